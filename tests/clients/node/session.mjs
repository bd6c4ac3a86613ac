// One session of the TypeScript SDK: node session.mjs 1|2 legacy|auto URL|stdio:JSON
// Prints what it saw as one JSON object.
const [, , line, era, target] = process.argv;
const one = line === "1";
const core = one
  ? await import("@modelcontextprotocol/sdk/client/index.js")
  : await import("@modelcontextprotocol/client");
const http = one
  ? await import("@modelcontextprotocol/sdk/client/streamableHttp.js")
  : core;
const pipes = one
  ? await import("@modelcontextprotocol/sdk/client/stdio.js")
  : await import("@modelcontextprotocol/client/stdio");

const seen = {};
const changed = { tools: 0 };
let news = () => {};
const options = {
  capabilities: {},
  listChanged: {
    tools: {
      autoRefresh: false,
      onChanged: () => {
        changed.tools += 1;
        news();
      },
    },
  },
};
if (!one && era === "auto") options.versionNegotiation = { mode: "auto" };
const client = new core.Client({ name: "node", version: "1" }, options);
const transport = target.startsWith("stdio:")
  ? new pipes.StdioClientTransport({ ...JSON.parse(target.slice(6)), stderr: "ignore" })
  : new http.StreamableHTTPClientTransport(new URL(target));
await client.connect(transport);

const call = (params, more = {}) =>
  one ? client.callTool(params, undefined, more) : client.callTool(params, more);

seen.server = client.getServerVersion();
const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
seen.tools = await names();
seen.prompts = (await client.listPrompts()).prompts;
seen.filled = await client.getPrompt({
  name: "translator",
  arguments: { language: "Spanish", who: "Al" },
});
seen.bare = await client.getPrompt({ name: "translator" });
seen.resources = (await client.listResources()).resources;
seen.sum = await call({ name: "t__echo", arguments: { a: null } });

seen.progress = [];
seen.answer = await call(
  {
    name: "chat",
    arguments: { recipe: "translator", prompt: "hello", variables: { who: "Al" } },
  },
  { onprogress: (progress) => seen.progress.push(progress.message) },
);

// Cancelled as soon as the first piece is there.
const stop = new AbortController();
try {
  await call(
    { name: "chat", arguments: { model: "up/endless", prompt: "hello" } },
    { signal: stop.signal, onprogress: () => stop.abort("enough") },
  );
  seen.cancelled = false;
} catch {
  seen.cancelled = true;
}

// The list grows while we are here.
const heard = new Promise((resolve) => (news = resolve));
await call({ name: "t__grow", arguments: { name: `late_${line}_${era}` } });
await heard;
seen.grown = (await names()).filter((name) => !seen.tools.includes(name));
seen.changed = changed.tools > 0;

await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
