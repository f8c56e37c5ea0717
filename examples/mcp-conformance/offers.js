// @ts-check
import { IMAGE, RED_PIXEL } from "./red-pixel.js";

/** @import { McpServerOptions } from "waybill/mcp" */

/** What the server offers besides tools. @type {McpServerOptions} */
export const OFFERS = {
  resources: [
    {
      uri: "test://static-text",
      name: "static-text",
      description: "A text.",
      mimeType: "text/plain",
      read: () => "This is the content of the static text resource.",
    },
    {
      uri: "test://static-binary",
      name: "static-binary",
      description: "An image.",
      mimeType: "image/png",
      read: () => Buffer.from(RED_PIXEL, "base64"),
    },
    {
      uri: "test://watched-resource",
      name: "watched-resource",
      description: "A resource to subscribe to.",
      mimeType: "text/plain",
      read: () => "Watched resource content",
    },
  ],
  resourceTemplates: [
    {
      uriTemplate: "test://template/{id}/data",
      name: "template",
      description: "Data by id.",
      mimeType: "application/json",
      read: (_, { id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
    },
  ],
  prompts: [
    {
      name: "test_simple_prompt",
      description: "A prompt without arguments.",
      get: () => "This is a simple prompt for testing.",
    },
    {
      name: "test_prompt_with_arguments",
      description: "A prompt with two arguments.",
      arguments: [
        {
          name: "arg1",
          description: "First test argument",
          required: true,
          complete: (typed) => ["paris", "park", "party"].filter((value) => value.startsWith(typed)),
        },
        { name: "arg2", description: "Second test argument", required: true },
      ],
      get: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
    },
    {
      name: "test_prompt_with_embedded_resource",
      description: "A prompt around a resource.",
      arguments: [{ name: "resourceUri", description: "URI of the resource to embed", required: true }],
      get: ({ resourceUri: uri }) => ({
        messages: [
          {
            role: "user",
            content: {
              type: "resource",
              resource: { uri, mimeType: "text/plain", text: "Embedded resource content for testing." },
            },
          },
          {
            role: "user",
            content: { type: "text", text: "Please process the embedded resource above." },
          },
        ],
      }),
    },
    {
      name: "test_prompt_with_image",
      description: "A prompt around an image.",
      get: () => ({
        messages: [
          { role: "user", content: IMAGE },
          { role: "user", content: { type: "text", text: "Please analyze the image above." } },
        ],
      }),
    },
    {
      name: "test_input_required_result_prompt",
      description: "A prompt that asks the person first.",
      get: async (_, { elicit }) => {
        const properties = { context: { type: "string" } };
        const requestedSchema = { type: "object", properties, required: ["context"] };
        const message = "What context should the prompt use?";
        const { content } = await elicit({ message, requestedSchema }, { key: "user_context" });
        return `Use this context: ${content?.["context"] ?? "none"}`;
      },
    },
  ],
};
