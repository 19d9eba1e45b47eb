import { serve } from "./serve.mjs";

const [root, home] = process.argv.slice(2);
const pi = await import(`${home}/node_modules/@mariozechner/pi-coding-agent/dist/core/tools/index.js`);
const tools = pi.createAllTools(root);

async function call(name, args) {
  const result = await tools[name].execute("bench", args);
  return result.content.map((part) => part.text ?? "").join("\n");
}

await serve({
  read: ({ path }) => call("read", { path }),
  page: ({ path, line, count }) => call("read", { path, offset: line, limit: count }),
  list: ({ path }) => call("ls", { path, limit: 100_000 }),
  write: (args) => call("write", args),
  edit: ({ path, old, new: text }) => call("edit", { path, edits: [{ oldText: old, newText: text }] }),
  search: ({ path, text }) => call("grep", { path, pattern: text, literal: true }),
  first: ({ path, text, limit }) => call("grep", { path, pattern: text, literal: true, limit }),
  shell: (args) => call("bash", args),
});
