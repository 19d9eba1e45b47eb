import { serve } from "./serve.mjs";

const [root, home] = process.argv.slice(2);
const core = await import(`${home}/node_modules/@google/gemini-cli-core/dist/index.js`);
const config = new core.Config({
  sessionId: "bench",
  targetDir: root,
  cwd: root,
  debugMode: false,
  model: "none",
  approvalMode: core.ApprovalMode.YOLO,
  usageStatisticsEnabled: false,
  disableLLMCorrection: true,
  fileFiltering: { respectGitIgnore: true, respectGeminiIgnore: false },
});
await config.storage.initialize();
const bus = config.getMessageBus();
const make = (name) => new core[name](config, bus);
const tools = {
  read: make("ReadFileTool"),
  list: make("LSTool"),
  edit: make("EditTool"),
  glob: make("GlobTool"),
  grep: make("RipGrepTool"),
  shell: make("ShellTool"),
};

async function call(name, args) {
  const signal = new AbortController().signal;
  const invocation = tools[name].build(args);
  const result = await invocation.execute({ abortSignal: signal }, signal);
  if (result.error) throw new Error(result.error.message);
  if (String(result.returnDisplay).startsWith("Error")) throw new Error(result.llmContent); // how its search tells a failure
  return result.llmContent;
}

await serve({
  read: ({ path }) => call("read", { file_path: path }),
  page: ({ path, line, count }) => call("read", { file_path: path, start_line: line, end_line: line + count - 1 }),
  list: ({ path }) => call("list", { dir_path: path }),
  edit: ({ path, old, new: text }) => call("edit", { file_path: path, old_string: old, new_string: text, instruction: "change it" }),
  glob: ({ path, pattern }) => call("glob", { dir_path: path, pattern }),
  search: ({ path, text }) => call("grep", { dir_path: path, pattern: text, fixed_strings: true }),
  first: ({ path, text, limit }) => call("grep", { dir_path: path, pattern: text, fixed_strings: true, total_max_matches: limit }),
  shell: ({ command }) => call("shell", { command }),
});
