// Uses the gateway as a program does that was written for OpenAI: node openai.mjs CASE MODEL. It prints what it has seen as JSON.
import OpenAI from "openai";
import { add, main } from "./case.mjs";

const client = new OpenAI({ maxRetries: 0 }); // the address and the key are in the environment
const model = process.argv[3];
const question = "What is 17 and 25?";

// turn asks for completions until the model has no more calls.
async function turn(ask) {
  const messages = [{ role: "user", content: question }];
  const seen = { text: "", calls: [], input: 0, output: 0 };
  for (;;) {
    const answer = await ask({ model, messages, tools: [{ type: "function", function: { name: add.name, description: add.description, parameters: add.parameters } }] });
    const { message, finish_reason } = answer.choices[0];
    seen.text += message.content ?? "";
    seen.input += answer.usage.prompt_tokens;
    seen.output += answer.usage.completion_tokens;
    messages.push(message);
    if (finish_reason !== "tool_calls") return seen;
    for (const call of message.tool_calls) {
      seen.calls.push(call.function.name);
      messages.push({ role: "tool", tool_call_id: call.id, content: add.run(JSON.parse(call.function.arguments)) });
    }
  }
}

// respond does the same with responses.
async function respond(ask) {
  const input = [{ role: "user", content: question }];
  const seen = { text: "", calls: [], input: 0, output: 0 };
  for (;;) {
    const answer = await ask({ model, input, store: false, tools: [{ type: "function", strict: false, name: add.name, description: add.description, parameters: add.parameters }] });
    seen.text += answer.output_text;
    seen.input += answer.usage.input_tokens;
    seen.output += answer.usage.output_tokens;
    const calls = answer.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return seen;
    for (const { name, call_id, arguments: args } of calls) {
      seen.calls.push(name);
      input.push({ type: "function_call", name, call_id, arguments: args }, { type: "function_call_output", call_id, output: add.run(JSON.parse(args)) });
    }
  }
}

main((problem) => problem instanceof OpenAI.APIError, {
  whole: () => turn((request) => client.chat.completions.create(request)),
  streamed: () => turn((request) => client.chat.completions.stream({ ...request, stream_options: { include_usage: true } }).finalChatCompletion()),
  responses: () => respond((request) => client.responses.create(request)),
  "responses-streamed": () => respond((request) => client.responses.stream(request).finalResponse()),
  models: async () => (await client.models.list()).data.map((each) => each.id),
  embeddings: async () => (await client.embeddings.create({ model, input: "a text" })).data[0].embedding,
  leave: async () => {
    const stream = await client.chat.completions.create({ model, stream: true, messages: [{ role: "user", content: "Go on." }] });
    for await (const chunk of stream) if (chunk.choices[0].delta.content) break; // which aborts it
    return true;
  },
});
