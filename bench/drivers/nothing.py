"""No tools: what the driver itself takes to start."""

from bench.drivers.serve import serve

if __name__ == "__main__":
    serve({"nothing": str})
