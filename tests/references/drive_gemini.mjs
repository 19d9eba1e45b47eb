// Makes calls through the tools of @google/gemini-cli-core.
// Usage: node drive_gemini.mjs PACKAGE RIPGREP CASES ANSWERS; the last two are JSON files.
// A case is {"root": directory, "calls": [[tool, parameters]]}; its answer is a list of {"failed", "content"}.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [location, ripgrep, cases, answers] = process.argv.slice(2);
const core = await import(pathToFileURL(join(location, 'dist', 'index.js')));
const kinds = [
  core.LSTool,
  core.ReadFileTool,
  core.ReadManyFilesTool,
  core.WriteFileTool,
  core.EditTool,
  core.RipGrepTool,
  core.GlobTool,
  core.ShellTool,
];

async function toolsOf(root) {
  const config = new core.Config({
    sessionId: 'reference',
    model: 'gemini-3-pro-preview',
    targetDir: root,
    cwd: root,
    debugMode: false,
    usageStatisticsEnabled: false,
    disableLLMCorrection: true, // a second model would be asked otherwise
    enableInteractiveShell: false,
  });
  config.getRipgrepPath = async () => ripgrep; // the package on npm does not contain it
  config.getBaseLlmClient = () => undefined; // no model is asked
  await config.storage.initialize();
  const bus = new core.MessageBus(config.getPolicyEngine(), false);
  return Object.fromEntries(kinds.map((Kind) => [Kind.Name, new Kind(config, bus)]));
}

const schemas = (tools) => Object.values(tools).map((tool) => tool.getSchema('gemini-3-pro-preview'));

async function answer(tools, [name, params]) {
  const result = await tools[name].validateBuildAndExecute(params, new AbortController().signal);
  const text = (part) => (typeof part === 'string' ? part : (part.text ?? part));
  const parts = [result.llmContent].flat().map(text);
  const content = parts.every((part) => typeof part === 'string') ? parts.join('') : parts;
  return { failed: Boolean(result.error), content: result.error ? result.error.message : content };
}

const output = { answers: [], schemas: [] };
for (const { root, calls } of JSON.parse(readFileSync(cases, 'utf8'))) {
  const tools = await toolsOf(root);
  if (!output.schemas.length) output.schemas = schemas(tools);
  const found = [];
  for (const call of calls) found.push(await answer(tools, call));
  output.answers.push(found);
}
writeFileSync(answers, JSON.stringify(output));
process.exit(0); // the package leaves timers behind
