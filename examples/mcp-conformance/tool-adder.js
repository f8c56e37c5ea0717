// @ts-check
import { defineOperation, Type } from "waybill";

/** @import { AnySchema, OperationContext, OperationRegistry } from "waybill" */

/** Makes a function that adds a tool to a registry in one line. @param {OperationRegistry} registry */
export function createToolAdder(registry) {
  /**
   * @param {string} name
   * @param {string} description
   * @param {(context: OperationContext, input: any) => unknown} handler
   * @param {AnySchema} inputSchema
   */
  return (name, description, handler, inputSchema = Type.Object({})) => {
    registry.register(
      defineOperation({
        namespace: "test",
        name,
        version: "1.0.0",
        type: "mutation",
        description,
        inputSchema,
        handler: (input, context) => handler(context, input),
      }),
    );
  };
}
