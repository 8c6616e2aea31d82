// What the programs beside it have in common: the tool that they offer, and how they tell what they have seen.

// add is the tool.
export const add = {
  name: "add",
  description: "Adds two numbers.",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"], additionalProperties: false },
  run: ({ a, b }) => String(a + b),
};

// main runs the case that the command line names. A refusal is something seen too, when the SDK has made one of its own errors of it.
export async function main(isOwn, cases) {
  try {
    console.log(JSON.stringify({ seen: await cases[process.argv[2]]() }));
  } catch (problem) {
    if (!isOwn(problem)) throw problem;
    console.log(JSON.stringify({ error: problem.constructor.name, status: problem.status ?? problem.status_code, message: problem.message }));
  }
}
