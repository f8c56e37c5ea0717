import { type AnyOperation, defineOperation, mcpEnvelope, OperationRegistry, Type, toolError } from "waybill";
import { type LocalPrompt, type LocalResource, serveStdio, toMcpServer } from "waybill/mcp";

/** What stands where, before anybody has taken any of it. */
const SHELVES = [
  { item: "box-small", boxes: 120, shelf: "A1" },
  { item: "box-large", boxes: 40, shelf: "A2" },
  { item: "tape", boxes: 300, shelf: "B1" },
  { item: "labels", boxes: 5, shelf: "B2" },
];

type Shelf = (typeof SHELVES)[number];

const StockSchema = Type.Object({ item: Type.String(), boxes: Type.Integer(), shelf: Type.String() });
const Item = Type.String({ minLength: 1, maxLength: 64, examples: ["tape"] });

/** The tools of the depot; what is taken is gone until the process ends. */
function depotOperations(): AnyOperation[] {
  const shelves = SHELVES.map((shelf) => ({ ...shelf }));
  return [stockOperation(shelves), labelOperation(), takeOperation(shelves)] as AnyOperation[];
}

/** Answers with structured content. */
function stockOperation(shelves: readonly Shelf[]) {
  return defineOperation({
    namespace: "depot",
    name: "stock",
    version: "1.0.0",
    type: "query",
    title: "What is in stock",
    description: "Lists what the depot has, all of it or one item.",
    inputSchema: Type.Object({ item: Type.Optional(Item) }, { additionalProperties: false }),
    outputSchema: Type.Object({ stock: Type.Array(StockSchema) }),
    annotations: { readOnly: true, openWorld: false },
    handler: ({ item }) => ({ stock: shelves.filter((shelf) => item === undefined || shelf.item === item) }),
  });
}

/** Answers as many servers do: the data is JSON, and the JSON is text. */
function labelOperation() {
  return defineOperation({
    namespace: "depot",
    name: "label",
    version: "1.0.0",
    type: "query",
    title: "Print a label",
    description: "Makes the label of a parcel. The answer is text that holds JSON.",
    inputSchema: Type.Object(
      {
        id: Type.String({ minLength: 1, maxLength: 32, examples: ["P-1001"] }),
        to: Type.String({ minLength: 1, maxLength: 120, examples: ["Lisbon"] }),
      },
      { additionalProperties: false },
    ),
    annotations: { readOnly: true, openWorld: false },
    handler: ({ id, to }) => {
      const lines = [id, to.toUpperCase()];
      const content = [
        { type: "text" as const, text: JSON.stringify({ id, lines, barcode: `*${id}*` }, undefined, 2) },
      ];
      return mcpEnvelope(content, { isError: false, content });
    },
  });
}

/** Says no where there is not enough. */
function takeOperation(shelves: readonly Shelf[]) {
  return defineOperation({
    namespace: "depot",
    name: "take",
    version: "1.0.0",
    type: "mutation",
    title: "Take something",
    description: "Takes boxes of an item from its shelf.",
    inputSchema: Type.Object(
      { item: Item, boxes: Type.Integer({ minimum: 1, maximum: 1_000 }) },
      { additionalProperties: false },
    ),
    outputSchema: StockSchema,
    annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: false },
    errors: {
      NOT_FOUND: { description: "There is no such item." },
      OUT_OF_STOCK: { description: "There are fewer boxes than asked for." },
    },
    handler: ({ item, boxes }) => {
      const shelf = shelves.find((each) => each.item === item);
      if (shelf === undefined) {
        const items = shelves.map((each) => each.item);
        const message = `The depot has no ${JSON.stringify(item)}; it has ${items.join(", ")}.`;
        return toolError(null, { code: "NOT_FOUND", message, details: { items } });
      }
      if (boxes > shelf.boxes) {
        const message = `There are ${shelf.boxes} boxes of ${item}, fewer than ${boxes}.`;
        return toolError({ ...shelf }, { code: "OUT_OF_STOCK", message, details: { left: shelf.boxes } });
      }
      shelf.boxes -= boxes;
      return { ...shelf };
    },
  });
}

/** What can be read at the depot. */
const DEPOT_RESOURCES: readonly LocalResource[] = [
  {
    uri: "depot://opening-hours",
    name: "opening-hours",
    title: "Opening hours",
    mimeType: "text/plain",
    read: () => "Monday to Friday 07:00 to 19:00, Saturday 08:00 to 13:00.\n",
  },
];

/** What models can be asked at the depot. */
const DEPOT_PROMPTS: readonly LocalPrompt[] = [
  {
    name: "complaint",
    title: "A complaint",
    description: "Writes to the depot about a parcel that arrived damaged.",
    arguments: [{ name: "id", description: "The number on the waybill.", required: true }],
    get: ({ id }) =>
      `Write a short, polite letter to the depot: parcel ${id} arrived damaged. Ask what happens next.`,
  },
];

/** The process behind the namespace `depot`: a small MCP server that lives as long as the process that started it listens. */
const server = toMcpServer(new OperationRegistry(depotOperations()), {
  name: "depot",
  title: "The depot",
  instructions: "What stands on the shelves of the depot, and what it takes to get some of it.",
  names: { prefix: false },
  resources: DEPOT_RESOURCES,
  prompts: DEPOT_PROMPTS,
});

await serveStdio(server).closed;
