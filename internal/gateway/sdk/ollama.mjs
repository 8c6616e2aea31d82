// Uses the gateway as a program does that was written for Ollama: node ollama.mjs CASE MODEL. It prints what it has seen as JSON.
import { Ollama } from "ollama";
import { add, main } from "./case.mjs";

const client = new Ollama({ host: process.env.OLLAMA_HOST });
const model = process.argv[3];
const tools = [{ type: "function", function: { name: add.name, description: add.description, parameters: add.parameters } }];

// turn asks until the model has no more calls.
async function turn(ask) {
  const messages = [{ role: "user", content: "What is 17 and 25?" }];
  const seen = { text: "", calls: [], input: 0, output: 0 };
  for (;;) {
    const { message, usage } = await ask({ model, messages, tools });
    seen.text += message.content;
    seen.input += usage.prompt_eval_count;
    seen.output += usage.eval_count;
    messages.push(message);
    if (!message.tool_calls?.length) return seen;
    for (const call of message.tool_calls) {
      seen.calls.push(call.function.name);
      messages.push({ role: "tool", tool_name: call.function.name, content: add.run(call.function.arguments) });
    }
  }
}

// joined makes one answer of the parts of a stream.
async function joined(request) {
  const message = { role: "assistant", content: "" };
  let usage;
  for await (const part of await client.chat({ ...request, stream: true })) {
    message.content += part.message.content;
    if (part.message.tool_calls) message.tool_calls = [...(message.tool_calls ?? []), ...part.message.tool_calls];
    if (part.done) usage = part;
  }
  return { message, usage };
}

// The SDK does not export the class of its errors.
main((problem) => problem.name === "ResponseError", {
  whole: () => turn(async (request) => {
    const answer = await client.chat(request);
    return { message: answer.message, usage: answer };
  }),
  streamed: () => turn(joined),
  generate: async () => (await client.generate({ model, prompt: "Say something." })).response,
  models: async () => (await client.list()).models.map((each) => each.model),
  embeddings: async () => (await client.embed({ model, input: "a text" })).embeddings[0],
  leave: async () => {
    const parts = await client.chat({ model, stream: true, messages: [{ role: "user", content: "Go on." }] });
    for await (const part of parts) if (part.message.content) break;
    parts.abort();
    return true;
  },
});
