import { defineOperation, OperationRegistry, Type } from "waybill";
import { serveStdio } from "waybill/mcp";

const inputSchema = Type.Object({ a: Type.Number(), b: Type.Number() });
const add = defineOperation({ namespace: "math", name: "add", inputSchema, handler: ({ a, b }) => a + b });
serveStdio(new OperationRegistry([add]));
