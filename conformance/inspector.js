// @ts-check
// Asks the example server what people ask with the MCP inspector, over stdio and HTTP: answers and exit codes.
import assert from "node:assert/strict";
import { askInspector, TOOL_ERROR } from "./ask-inspector.js";
import { EXAMPLE, startExampleServer } from "./example-server.js";

/** @type {import("./ask-inspector.js").Question[]} */
const QUESTIONS = [
  {
    args: ["--method", "tools/list"],
    code: 0,
    check: ({ tools }) => assert.ok(tools.some(({ name = "" }) => name === "test_simple_text")),
  },
  {
    args: ["--method", "tools/call", "--tool-name", "test_simple_text"],
    code: 0,
    check: ({ content }) => assert.match(content[0].text, /simple text response/),
  },
  {
    args: ["--method", "tools/call", "--tool-name", "test_multiple_content_types"],
    code: 0,
    check: ({ content }) => {
      const types = content.map(({ type = "" }) => type);
      assert.deepEqual(types, ["text", "image", "resource"]);
    },
  },
  {
    args: ["--method", "tools/call", "--tool-name", "test_error_handling"],
    code: TOOL_ERROR,
    check: ({ isError, content }) => {
      assert.equal(isError, true);
      assert.match(content[0].text, /intentionally returns an error/);
    },
  },
  {
    args: ["--method", "resources/list"],
    code: 0,
    check: ({ resources }) => assert.ok(resources.some(({ uri = "" }) => uri === "test://static-text")),
  },
  {
    args: ["--method", "resources/read", "--uri", "test://static-text"],
    code: 0,
    check: ({ contents }) => assert.match(contents[0].text, /static text resource/),
  },
  {
    args: [
      "--method",
      "prompts/get",
      "--prompt-name",
      "test_prompt_with_arguments",
      "--prompt-args",
      "arg1=a",
      "arg2=b",
    ],
    code: 0,
    check: ({ messages }) => assert.match(messages[0].content.text, /arg1='a', arg2='b'/),
  },
];

const server = await startExampleServer();
try {
  const targets = {
    stdio: [process.execPath, EXAMPLE, "--stdio"],
    http: [server.url, "--transport", "http"],
  };
  process.exitCode = (await askInspector(targets, QUESTIONS)) === 0 ? 0 : 1;
} finally {
  await server.stop();
}
