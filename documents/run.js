import { statSync } from "node:fs";
import { parseArgs } from "node:util";
import { OperationRegistry } from "../dist/index.js";
import { fromOpenApi } from "../dist/openapi.js";
import { listOperations, startAnswerServer } from "./answer-server.js";
import { findDocuments, readDocument } from "./find-documents.js";
import { sampleValue } from "./sample-value.js";

const HELP = `Imports public OpenAPI documents and calls every operation of them.

  node documents/run.js              250 documents
  node documents/run.js --count 20   so many
  node documents/run.js --all        every document of the installed packages but the two largest (2,639; a quarter of an hour)
  node documents/run.js --only NAME  those whose name contains NAME

Exit code 1 when an operation is missing, or fewer than 99.9 % can be called.`;

/** Two documents of Microsoft's have 34,000 operations between them: an hour of their own, with `--only graph`. */
const LARGEST = 15_000_000;

/** How many calls of one document are under way at a time. */
const AT_ONCE = 8;
const LEAST_CALLABLE = 0.999;

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "250" },
    all: { type: "boolean", default: false },
    only: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

const server = await startAnswerServer();
const all = values.all || values.only !== undefined;
const documents = findDocuments(all ? Number.POSITIVE_INFINITY : Number(values.count)).filter(
  ({ name, path }) =>
    values.only === undefined ? statSync(path).size < LARGEST || !values.all : name.includes(values.only),
);
const totals = { documents: 0, operations: 0, missing: 0, called: 0, violated: 0 };
const failures = [];
const startedAt = Date.now();
for (const [number, { path, name }] of documents.entries()) {
  await tryDocument(number, path, name);
  totals.documents += 1;
  if (process.stderr.isTTY || number % 25 === 24) {
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    process.stderr.write(
      `${number + 1} of ${documents.length} documents, ${totals.operations} operations, ${seconds} s\n`,
    );
  }
}
await server.close();
report();

/** Imports one document, looks whether everything is there, and calls it all. */
async function tryDocument(number, path, name) {
  const document = readDocument(path);
  server.add(number, document);
  const expected = listOperations(document);
  const settings = {
    namespace: "tried",
    baseUrl: `${server.origin}/${number}`,
    retry: false,
    limits: { operations: 50_000 },
    onWarning() {},
  };
  // A scheme that nobody can be given credentials for, such as a key in a header that is the transport's, goes without.
  const source = await fromOpenApi(path, { ...settings, auth: credentialsFor(document) }).catch((error) => {
    if (!(error instanceof TypeError)) throw error;
    return fromOpenApi(path, settings);
  });
  const registry = new OperationRegistry([], { onWarning() {} });
  registry.registerAll(source);
  const operations = [...source];
  totals.operations += expected.length;
  if (operations.length !== expected.length) {
    totals.missing += expected.length - operations.length;
    const reasons = source.unusable.map((entry) => `${entry.name}: ${entry.reason}`).join("; ");
    fail(`${name}: ${operations.length} of ${expected.length} operations. ${reasons}`);
  }
  const routes = new Map(
    expected.map(({ method, path, operation }) => [operation.operationId, `${method} ${path}`]),
  );
  const waiting = operations.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const operation of waiting)
        await tryOperation(registry, operation, { name, route: routes.get(operation.name) });
    }),
  );
  await source.close();
  server.remove(number);
}

/** What a credential can be given for; mutual TLS, digest and their like are for somebody else. */
function isUsable(scheme) {
  if (scheme?.type === "http") return /^(basic|bearer)$/i.test(scheme.scheme);
  return ["apiKey", "basic", "oauth2", "openIdConnect"].includes(scheme?.type);
}

/** Something for every scheme, for operations that ask for it. */
function credentialsFor(document) {
  const schemes = document.components?.securitySchemes ?? document.securityDefinitions ?? {};
  const known = Object.entries(schemes).filter(([, scheme]) => isUsable(scheme));
  const credentials = known.map(([name, { type, scheme }]) => {
    const isBasic = type === "basic" || (type === "http" && /^basic$/i.test(scheme));
    return [name, isBasic ? { username: "someone", password: "secret" } : "secret"];
  });
  return credentials.length === 0 ? undefined : Object.fromEntries(credentials);
}

async function tryOperation(registry, operation, { name, route }) {
  try {
    const input = sampleInput(operation.inputSchema);
    const envelope = await call(registry, operation, input);
    const matched = envelope?.meta.headers["x-matched"]?.split(" ").map(decodeURIComponent) ?? [];
    if (route !== undefined && !matched.includes(route))
      throw new Error(`It reached ${matched} and not ${route}.`);
    totals.called += 1;
    if (envelope?.meta.waybill?.violations !== undefined) totals.violated += 1;
  } catch (error) {
    const issues = error.details?.issues
      ?.slice(0, 2)
      .map((issue) => `${issue.pointer} expected ${issue.expected}`);
    const said = error.details?.body ?? issues?.join(", ") ?? error.cause?.message ?? "";
    fail(
      `${name} ${operation.id}: ${error.code ?? error.name}: ${error.message} ${JSON.stringify(said).slice(0, 200)}`,
    );
  }
}

/** Failures are told as they happen. */
function fail(failure) {
  failures.push(failure);
  console.log(failure);
}

async function call(registry, operation, input) {
  if (operation.type !== "subscription") return registry.execute(operation.id, input);
  for await (const envelope of registry.subscribe(operation.id, input)) return envelope;
  return undefined;
}

/** An input by the operation's own schema. */
function sampleInput(schema) {
  const resolve = (reference) => {
    const name = decodeURIComponent(reference.replace(/^#\/\$defs\//, ""))
      .replaceAll("~1", "/")
      .replaceAll("~0", "~");
    return schema.$defs?.[name] ?? true;
  };
  return sampleValue(schema, resolve, "request");
}

function report() {
  const share = totals.operations === 0 ? 0 : totals.called / totals.operations;
  console.log(
    `\n${totals.documents} documents, ${totals.operations} operations, ${totals.missing} missing, ` +
      `${totals.called} called (${(share * 100).toFixed(3)} %), ${failures.length} failures; ` +
      `${totals.violated} answers did not match their schema.`,
  );
  if (totals.missing > 0 || share < LEAST_CALLABLE) process.exitCode = 1;
}
