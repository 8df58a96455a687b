// Drives the TypeScript SDK v1: URL MODE HEADERS TOOL ARGUMENTS, prints one JSON line.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, , headers, tool, args] = process.argv.slice(2);
const client = new Client({ name: "drive", version: "1" }, { capabilities: { elicitation: {} } });
let asked = 0;
client.setRequestHandler(ElicitRequestSchema, async () => {
  asked++;
  return { action: "accept", content: { username: "me", email: "m@e", name: "me" } };
});
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: JSON.parse(headers) },
});
await client.connect(transport);
let progress = 0;
const tools = (await client.listTools()).tools;
const result = await client.callTool({ name: tool, arguments: JSON.parse(args) }, undefined, {
  onprogress: () => {
    progress++;
  },
});
const seen = {
  version: transport.protocolVersion,
  tools: tools.map((tool) => tool.name),
  text: result.content[0].text,
  progress,
  asked,
  session: Boolean(transport.sessionId),
};
await transport.terminateSession();
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
