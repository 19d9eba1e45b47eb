def options(place): return {}
