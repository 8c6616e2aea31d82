// Uses the gateway as a program does that was written for Anthropic: node anthropic.mjs CASE MODEL. It prints what it has seen as JSON.
import Anthropic from "@anthropic-ai/sdk";
import { add, main } from "./case.mjs";

const client = new Anthropic({ maxRetries: 0 }); // the address and the key are in the environment
const model = process.argv[3];
const tools = [{ name: add.name, description: add.description, input_schema: add.parameters }];

// turn asks until the model has no more calls.
async function turn(ask) {
  const messages = [{ role: "user", content: "What is 17 and 25?" }];
  const seen = { text: "", calls: [], input: 0, output: 0 };
  for (;;) {
    const answer = await ask({ model, max_tokens: 500, messages, tools });
    seen.text += answer.content.filter((block) => block.type === "text").map((block) => block.text).join("");
    seen.input += answer.usage.input_tokens;
    seen.output += answer.usage.output_tokens;
    messages.push({ role: "assistant", content: answer.content });
    if (answer.stop_reason !== "tool_use") return seen;
    const results = answer.content.filter((block) => block.type === "tool_use").map((call) => {
      seen.calls.push(call.name);
      return { type: "tool_result", tool_use_id: call.id, content: add.run(call.input) };
    });
    messages.push({ role: "user", content: results });
  }
}

main((problem) => problem instanceof Anthropic.APIError, {
  whole: () => turn((request) => client.messages.create(request)),
  streamed: () => turn((request) => client.messages.stream(request).finalMessage()),
  models: async () => (await client.models.list()).data.map((each) => each.id),
  count: async () => (await client.messages.countTokens({ model, messages: [{ role: "user", content: "How many?" }] })).input_tokens > 0,
  leave: async () => {
    const stream = client.messages.stream({ model, max_tokens: 500, messages: [{ role: "user", content: "Go on." }] });
    stream.on("text", () => stream.abort());
    await stream.done().catch((problem) => {
      if (!(problem instanceof Anthropic.APIUserAbortError)) throw problem;
    });
    return true;
  },
});
