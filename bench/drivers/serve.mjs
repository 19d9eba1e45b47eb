// The loop of every driver for Node: a JSON line asks for an operation, the answer says how long one call took.
import { createInterface } from "node:readline";

export async function serve(operations) {
  const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
  console.log = console.info = console.debug = console.error; // what a tool prints is not an answer
  say({ ready: Object.keys(operations) });
  for await (const line of createInterface({ input: process.stdin })) {
    const { op, args, repeat, together } = JSON.parse(line);
    if (together) {
      const results = await Promise.allSettled(together.map((each) => operations[op](each)));
      say({ done: results.filter((each) => each.status === "fulfilled").length });
      continue;
    }
    try {
      let result = "";
      const began = performance.now();
      for (let n = 0; n < repeat; n++) result = await operations[op](args);
      say({ ms: (performance.now() - began) / repeat, text: String(result).slice(0, 4_000_000) });
    } catch (error) {
      say({ error: `${error?.name}: ${error?.message}`.slice(0, 2000) });
    }
  }
  process.exit(0);
}
