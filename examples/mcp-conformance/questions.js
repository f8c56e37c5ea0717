// @ts-check
import { isCallError, Type } from "waybill";
import { createToolAdder } from "./tool-adder.js";

/** @import { ElicitAnswer, OperationRegistry } from "waybill" */

const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const CONFIRMATION = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };

/** @param {ElicitAnswer} answer */
const told = ({ action, content }) => `action=${action}, content=${JSON.stringify(content ?? {})}`;

/** @param {string} text @param {number} maxTokens */
const prompt = (text, maxTokens) => ({
  messages: [{ role: "user", content: { type: "text", text } }],
  maxTokens,
});

/** @param {{ content: any }} answer */
const spoken = ({ content }) =>
  (Array.isArray(content) ? content : [content]).map((block) => block.text).join("");

/** Adds the tools that ask the caller's side something while they run. @param {OperationRegistry} registry */
export function addQuestions(registry) {
  const addTool = createToolAdder(registry);

  addTool(
    "test_sampling",
    "Asks the caller's model.",
    async ({ sample }, input) => `LLM response: ${spoken(await sample(prompt(input.prompt, 100)))}`,
    Type.Object({ prompt: Type.String() }),
  );
  addTool(
    "test_elicitation",
    "Asks the person for a name and an address.",
    async ({ elicit }, { message }) => {
      const requestedSchema = {
        type: "object",
        properties: {
          username: { type: "string", description: "User's response" },
          email: { type: "string", description: "User's email address" },
        },
        required: ["username", "email"],
      };
      return `User response: ${told(await elicit({ message, requestedSchema }))}`;
    },
    Type.Object({ message: Type.String() }),
  );
  addTool("test_elicitation_sep1034_defaults", "Asks with a default for every field.", async ({ elicit }) => {
    const properties = {
      name: { type: "string", description: "User name", default: "John Doe" },
      age: { type: "integer", description: "User age", default: 30 },
      score: { type: "number", description: "User score", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", description: "Verification status", default: true },
    };
    const requestedSchema = { type: "object", properties, required: [] };
    return `Elicitation completed: ${told(await elicit({ message: "Please review", requestedSchema }))}`;
  });
  addTool("test_elicitation_sep1330_enums", "Asks for choices of five kinds.", async ({ elicit }) => {
    const options = ["option1", "option2", "option3"];
    const titled = ["First", "Second", "Third"].map((title, index) => ({
      const: `value${index + 1}`,
      title,
    }));
    const properties = {
      untitledSingle: { type: "string", enum: options },
      titledSingle: { type: "string", oneOf: titled },
      legacyEnum: { type: "string", enum: ["opt1", "opt2"], enumNames: ["Option One", "Option Two"] },
      untitledMulti: { type: "array", items: { type: "string", enum: options } },
      titledMulti: { type: "array", items: { anyOf: titled } },
    };
    const requestedSchema = { type: "object", properties, required: [] };
    return `Elicitation completed: ${told(await elicit({ message: "Please choose", requestedSchema }))}`;
  });
  addTool("test_missing_capability", "Needs a model on the caller's side.", async ({ sample }) =>
    spoken(await sample(prompt("Say hello", 10))),
  );
  addTool("test_streaming_elicitation", "Asks for a confirmation.", async ({ elicit }) =>
    told(await elicit({ message: "Please confirm", requestedSchema: CONFIRMATION })),
  );

  // The same for clients of 2026-07-28, which get the questions as a result and call again with the answers.
  addTool("test_input_required_result_elicitation", "Asks for a name.", async ({ elicit }) => {
    const question = { message: "What is your name?", requestedSchema: NAME };
    const answer = await elicit(question, { key: "user_name" });
    return `Hello, ${answer.content?.["name"] ?? "stranger"}!`;
  });
  addTool("test_input_required_result_sampling", "Asks the caller's model.", async ({ sample }) =>
    spoken(await sample(prompt("What is the capital of France?", 100))),
  );
  addTool("test_input_required_result_list_roots", "Asks for the roots.", async ({ roots }) =>
    (await roots()).map(({ uri }) => uri).join("\n"),
  );
  for (const name of [
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
  ]) {
    addTool(name, "Asks for a confirmation and goes on where it was.", async ({ elicit }) => {
      const question = { message: "Please confirm", requestedSchema: CONFIRMATION };
      const answer = await elicit(question, { key: "confirm" });
      return `state-ok: ${told(answer)}`;
    });
  }
  addTool("test_input_required_result_multiple_inputs", "Asks three things at once.", async (context) => {
    const [name, greeting, roots] = await Promise.all([
      context.elicit({ message: "What is your name?", requestedSchema: NAME }, { key: "user_name" }),
      context.sample(prompt("Generate a greeting", 50), { key: "greeting" }),
      context.roots({ key: "client_roots" }),
    ]);
    return `${spoken(greeting)} ${name.content?.["name"]}, of ${roots.length} roots`;
  });
  addTool("test_input_required_result_multi_round", "Asks twice.", async ({ elicit }) => {
    const color = { type: "object", properties: { color: { type: "string" } }, required: ["color"] };
    const first = await elicit({ message: "Step 1: What is your name?", requestedSchema: NAME });
    const second = await elicit({ message: "Step 2: What is your favorite color?", requestedSchema: color });
    return `${first.content?.["name"]} likes ${second.content?.["color"]}`;
  });
  addTool(
    "test_input_required_result_capabilities",
    "Asks the caller, if it can be asked.",
    async (context) => {
      try {
        return told(await context.elicit({ message: "Please confirm", requestedSchema: CONFIRMATION }));
      } catch (error) {
        if (!isCallError(error) || error.code !== "NOT_IMPLEMENTED") throw error;
        return spoken(await context.sample(prompt("Shall we go on?", 10)));
      }
    },
  );
}
