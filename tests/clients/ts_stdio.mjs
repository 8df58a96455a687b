// Drives the TypeScript SDK v1 over stdio: COMMAND MODE CALLS, prints one JSON line; the first and
// the last are JSON, MODE is not looked at.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

const [command, , calls] = process.argv.slice(2);
const [word, ...words] = JSON.parse(command);
const seen = { texts: [], asked: [], progress: 0 };
const client = new Client(
  { name: "drive", version: "1" },
  { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
);
client.setRequestHandler(ElicitRequestSchema, async () => {
  seen.asked.push("elicitation");
  return { action: "accept", content: { username: "me", email: "m@e", name: "me" } };
});
client.setRequestHandler(CreateMessageRequestSchema, async () => {
  seen.asked.push("sampling");
  return { role: "assistant", content: { type: "text", text: "Paris" }, model: "m" };
});
client.setRequestHandler(ListRootsRequestSchema, async () => {
  seen.asked.push("roots");
  return { roots: [{ uri: "file:///srv" }] };
});
const transport = new StdioClientTransport({ command: word, args: words, env: process.env });
await client.connect(transport);
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
for (const [name, args] of JSON.parse(calls)) {
  const result = await client.callTool({ name, arguments: args }, undefined, {
    onprogress: () => {
      seen.progress++;
    },
  });
  seen.texts.push(result.content[0].text);
}
// The client keeps the negotiated version to itself over stdio.
seen.version = "";
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
