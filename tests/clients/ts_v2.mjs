// Drives the TypeScript client v2: URL MODE HEADERS TOOL ARGUMENTS, prints one JSON line.
// MODE is legacy, auto, or a revision to pin.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, mode, headers, tool, args] = process.argv.slice(2);
const client = new Client(
  { name: "drive", version: "1" },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: ["legacy", "auto"].includes(mode) ? mode : { pin: mode } },
  },
);
let asked = 0;
client.setRequestHandler("elicitation/create", async () => {
  asked++;
  return { action: "accept", content: { username: "me", email: "m@e", name: "me" } };
});
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: JSON.parse(headers) },
});
await client.connect(transport);
let progress = 0;
const tools = (await client.listTools()).tools;
const result = await client.callTool(
  { name: tool, arguments: JSON.parse(args) },
  {
    onprogress: () => {
      progress++;
    },
  },
);
const seen = {
  version: client.getNegotiatedProtocolVersion?.() || transport.protocolVersion,
  tools: tools.map((tool) => tool.name),
  text: result.content[0].text,
  progress,
  asked,
  session: Boolean(transport.sessionId),
};
if (transport.sessionId) await transport.terminateSession();
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
