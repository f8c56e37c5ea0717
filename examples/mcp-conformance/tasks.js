// @ts-check
import { setTimeout as delay } from "node:timers/promises";
import { defineOperation, Type, toolError } from "waybill";

/** @import { AnySchema, ElicitAnswer, OperationContext, OperationRegistry } from "waybill" */

const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const CONFIRMATION = { type: "object", properties: { confirm: { type: "boolean" } }, required: ["confirm"] };

/** Tools that run as tasks alone. */
export const ONLY_TASKS = ["test.failing_job", "test.test_tool_with_task"];

/** Adds the tools whose calls are tasks, and one whose calls are none. @param {OperationRegistry} registry */
export function addTasks(registry) {
  /**
   * @param {string} name
   * @param {string} description
   * @param {{ durable?: boolean, inputSchema?: AnySchema, handler: (context: OperationContext, input: any) => unknown }} rest
   */
  const addTool = (name, description, { handler, durable = true, inputSchema = Type.Object({}) }) =>
    registry.register(
      defineOperation({
        namespace: "test",
        name,
        version: "1.0.0",
        type: "mutation",
        description,
        durable,
        inputSchema,
        handler: (input, context) => handler(context, input),
      }),
    );

  addTool("greet", "Greets, at once.", {
    durable: false,
    inputSchema: Type.Object({ name: Type.String() }),
    handler: (_, { name }) => `Hello, ${name}!`,
  });
  addTool("slow_compute", "Takes as many seconds as it is told.", {
    inputSchema: Type.Object({ seconds: Type.Number({ minimum: 0 }), label: Type.Optional(Type.String()) }),
    handler: async ({ signal, progress }, { seconds, label = "it" }) => {
      progress(`Computing ${label}.`);
      await delay(seconds * 1_000, undefined, { signal });
      return `Computed ${label} in ${seconds} s.`;
    },
  });
  addTool("failing_job", "Says no after a while.", {
    handler: async ({ signal }) => {
      await delay(1_000, undefined, { signal });
      return toolError(null, { message: "This job always fails." });
    },
  });
  addTool("protocol_error_job", "Needs what no client of the suite offers.", {
    handler: async ({ roots }) => await roots(),
  });
  addTool("confirm_delete", "Asks before it deletes nothing.", {
    inputSchema: Type.Object({ filename: Type.Optional(Type.String()) }),
    handler: async ({ elicit }, { filename = "a file" }) => {
      const { action, content } = await elicit({
        message: `Delete ${filename}?`,
        requestedSchema: CONFIRMATION,
      });
      return action === "accept" && content?.["confirm"] === true ? `Deleted ${filename}.` : "Kept it.";
    },
  });
  addTool("multi_input", "Asks two things at a time.", {
    handler: async ({ elicit }) => {
      const ask = (/** @type {string} */ message) => elicit({ message, requestedSchema: NAME });
      const answers = await Promise.all([ask("What is the first name?"), ask("What is the second name?")]);
      return answers.map(({ content }) => content?.["name"]).join(" and ");
    },
  });
  addTool("test_tool_with_task", "Asks for a name, and works for a while then.", {
    durable: false,
    handler: async ({ elicit, signal }) => {
      const asked = { message: "What is your name?", requestedSchema: NAME };
      const { content } = await elicit(asked, { key: "user_name" });
      await delay(300, undefined, { signal });
      return `Hello, ${content?.["name"]}!`;
    },
  });
}
