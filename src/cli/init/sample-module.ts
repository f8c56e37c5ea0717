/** A module with one operation, that works as it is: in JavaScript and in TypeScript alike. */
export const SAMPLE_MODULE = `import { defineOperation, Type } from "waybill";

/** Try it: waybill call hello.greet name=Ada */
export const greet = defineOperation({
  namespace: "hello",
  name: "greet",
  version: "1.0.0",
  type: "query",
  description: "Greets someone by name.",
  inputSchema: Type.Object({ name: Type.String({ minLength: 1 }) }),
  outputSchema: Type.Object({ text: Type.String() }),
  handler: ({ name }) => ({ text: \`Hello, \${name}.\` }),
});
`;

/** Where operations of one's own are looked for. */
export const OPERATIONS_GLOB = "operations/*.{ts,mts,js,mjs}";
