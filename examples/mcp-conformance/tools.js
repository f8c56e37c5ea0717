// @ts-check
import { setTimeout as delay } from "node:timers/promises";
import { mcpEnvelope, toolError } from "waybill";
import { IMAGE } from "./red-pixel.js";
import { createToolAdder } from "./tool-adder.js";

/** @import { MCPContentBlock, OperationRegistry } from "waybill" */

/** A WAV without a sound. */
const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/** @param {MCPContentBlock[]} content */
const blocks = (...content) => mcpEnvelope(content, { isError: false, content });

/** Adds the tools that answer by themselves. @param {OperationRegistry} registry */
export function addTools(registry) {
  const addTool = createToolAdder(registry);

  // Content of every kind.
  addTool("test_simple_text", "Returns a text.", () => "This is a simple text response for testing.");
  addTool("test_image_content", "Returns an image.", () => blocks(IMAGE));
  addTool("test_audio_content", "Returns a sound.", () =>
    blocks({ type: "audio", data: SILENCE, mimeType: "audio/wav" }),
  );
  addTool("test_embedded_resource", "Returns a resource.", () =>
    blocks({
      type: "resource",
      resource: {
        uri: "test://embedded-resource",
        mimeType: "text/plain",
        text: "This is an embedded resource content.",
      },
    }),
  );
  addTool("test_multiple_content_types", "Returns a text, an image and a resource.", () =>
    blocks({ type: "text", text: "Multiple content types test:" }, IMAGE, {
      type: "resource",
      resource: {
        uri: "test://mixed-content-resource",
        mimeType: "application/json",
        text: JSON.stringify({ test: "data", value: 123 }),
      },
    }),
  );
  addTool("test_error_handling", "Says no.", () =>
    toolError(null, { message: "This tool intentionally returns an error for testing" }),
  );

  // What is told while a call runs.
  addTool("test_tool_with_logging", "Logs three lines.", async ({ log }) => {
    log("info", "Tool execution started");
    await delay(50);
    log("info", "Tool processing data");
    await delay(50);
    log("info", "Tool execution completed");
    return "Logged three lines.";
  });
  addTool("test_logging_tool", "Logs a line.", ({ log }) => {
    log("info", "A line for those who asked for it");
    return "Logged a line.";
  });
  addTool("test_tool_with_progress", "Reports its progress.", async ({ progress }) => {
    for (const done of [0, 50, 100]) {
      progress({ progress: done, total: 100 });
      await delay(50);
    }
    return "Reported its progress.";
  });
  addTool("test_reconnection", "Takes a moment.", async () => {
    await delay(100);
    return "Reconnection test completed successfully";
  });

  // Schemas are served as they were written.
  addTool(
    "json_schema_2020_12_tool",
    "Tool with JSON Schema 2020-12 features",
    (_, input) => `Called with ${JSON.stringify(input)}`,
    {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          $anchor: "addressDef",
          type: "object",
          properties: { street: { type: "string" }, city: { type: "string" } },
        },
      },
      properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
  );
  addTool("test_x_mcp_header", "Mirrors its region in a header.", (_, { region }) => `Region: ${region}`, {
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" } },
  });

  // A list that changes while somebody watches it.
  addTool("test_trigger_tool_change", "Adds a tool, or removes it again.", () => {
    if (registry.remove("test.test_dynamic")) return "Removed a tool.";
    addTool("test_dynamic", "Comes and goes.", () => "Here for now.");
    return "Added a tool.";
  });
}
