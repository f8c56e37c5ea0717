import { createServer } from "node:http";
import { sampleValue } from "./sample-value.js";

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/** Lists the operations of a document by looking at it, and nothing else. */
export function listOperations(document) {
  const resolve = createResolver(document);
  return Object.entries(document.paths ?? {}).flatMap(([path, item]) => {
    const whole = typeof item?.$ref === "string" ? { ...resolve(item.$ref), ...item } : item;
    return METHODS.filter((method) => typeof whole?.[method] === "object" && whole[method] !== null).map(
      (method) => ({
        method: method.toUpperCase(),
        path,
        operation: whole[method],
        shared: whole.parameters ?? [],
      }),
    );
  });
}

/** Follows `#/…` references of one document. */
function createResolver(document) {
  return (reference) => {
    if (!reference.startsWith("#")) return true;
    let found = document;
    for (const part of reference.slice(1).split("/").slice(1)) {
      const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
      found =
        typeof found === "object" && found !== null && Object.hasOwn(found, name) ? found[name] : undefined;
    }
    return found ?? true;
  };
}

/** Serves documents, each under `/<its number>`, with answers made from their schemas; knows nothing of Waybill. */
export async function startAnswerServer() {
  const served = new Map();
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => answer(served, request, response, Buffer.concat(chunks)));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    add: (number, document) => served.set(String(number), toRoutes(document)),
    remove: (number) => served.delete(String(number)),
    close: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
}

function toRoutes(document) {
  const resolve = createResolver(document);
  return listOperations(document).map(({ method, path, operation, shared }) => ({
    method,
    path,
    operation,
    resolve,
    document,
    pattern: toPattern(path.replace(/\?.*$/s, "")),
    query: [...new URLSearchParams(/\?([^#]*)/.exec(path)?.[1] ?? "")],
    parameters: toParameters(operation, shared, resolve),
    literal: path.replace(/\{[^}]*\}/g, "").length,
  }));
}

function toParameters(operation, shared, resolve) {
  const byPlace = new Map();
  for (const given of [...shared, ...(Array.isArray(operation.parameters) ? operation.parameters : [])]) {
    const parameter = typeof given?.$ref === "string" ? resolve(given.$ref) : given;
    if (typeof parameter?.name === "string") byPlace.set(`${parameter.in} ${parameter.name}`, parameter);
  }
  return [...byPlace.values()];
}

/** A path as a server sees it: a fragment, which some documents tell operations apart by, is never sent. */
function toPattern(path) {
  const parts = path
    .replace(/#.*$/, "")
    .split(/\{[^}]*\}/)
    .map((text) => encodeURI(text).replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^/]+")}$`);
}

function answer(served, request, response, body) {
  const [, number = "", rest = "/"] = /^\/(\d+)(\/[^?]*)?/.exec(request.url) ?? [];
  const routes = (served.get(number) ?? []).filter(
    (route) => route.method === request.method && matches(route, rest, request.url),
  );
  routes.sort((a, b) => b.literal - a.literal);
  const [best] = routes;
  if (best === undefined) return refuse(response, 404, `no route for ${request.method} ${request.url}`);
  // Operations that differ by what is never sent share an address.
  const route = routes.find((one) => missingFrom(one, request, body) === undefined) ?? best;
  const names = routes.map(({ method, path }) => encodeURIComponent(`${method} ${path}`)).join(" ");
  response.setHeader("x-matched", names);
  const missing = missingFrom(route, request, body);
  if (missing !== undefined) return refuse(response, 400, missing);
  write(route, response);
}

/** Some documents have a query in their paths, which is part of what is asked. */
function matches({ pattern, query }, path, url) {
  if (!pattern.test(path)) return false;
  const sent = new URL(url, "http://localhost").searchParams;
  return query.every(([name, value]) => sent.getAll(name).includes(value) || /[{}]/.test(name + value));
}

function missingFrom({ operation, parameters, resolve, document }, request, body) {
  const query = new URL(request.url, "http://localhost").searchParams;
  for (const parameter of parameters) {
    if (parameter.required !== true) continue;
    const { name, style, schema } = parameter;
    const isPlain = style === undefined && typeof schema?.$ref !== "string" && schema?.type !== "object";
    if (parameter.in === "query" && isPlain && schema?.type !== "array" && !query.has(name))
      return `query ${name} is missing`;
    const isOurs = ["accept", "content-type", "authorization"].includes(name.toLowerCase());
    if (parameter.in === "header" && !isOurs && request.headers[name.toLowerCase()] === undefined)
      return `header ${name} is missing`;
  }
  const wanted = operation.requestBody;
  const requestBody = typeof wanted?.$ref === "string" ? resolve(wanted.$ref) : wanted;
  const isNeeded =
    requestBody?.required === true ||
    (document.swagger && parameters.some((p) => p.in === "body" && p.required));
  const isSent = body.length > 0 || request.headers["content-type"] !== undefined;
  return isNeeded && !isSent ? "the body is missing" : undefined;
}

function write({ operation, resolve, document }, response) {
  const responses = Object.entries(operation.responses ?? {});
  const [status, given] = responses.find(([code]) => /^2\d\d$/.test(code)) ??
    responses.find(([code]) => /^2XX$/i.test(code)) ??
    responses.find(([code]) => code === "default") ?? ["204", {}];
  const declared = (typeof given?.$ref === "string" ? resolve(given.$ref) : given) ?? {};
  const { type, schema } = contentOf(declared, operation, document);
  response.statusCode = /^\d+$/.test(status) ? Number(status) : 200;
  if (type === undefined || response.statusCode === 204 || response.req.method === "HEAD")
    return response.end();
  response.setHeader("content-type", type);
  if (/json/i.test(type) && !/x-ndjson|json-seq|jsonl/i.test(type))
    return response.end(JSON.stringify(sampleValue(schema ?? true, resolve, "response")));
  if (/event-stream/.test(type)) return response.end("data: one\n\n");
  if (/ndjson|json-seq|jsonl/.test(type)) return response.end('{"n":1}\n');
  return response.end(/^text|xml/.test(type) ? "sample" : Buffer.from([1, 2, 3]));
}

function contentOf(declared, operation, document) {
  const isOld = document.swagger !== undefined;
  if (isOld) {
    if (declared.schema === undefined) return {};
    return {
      type: (operation.produces ?? document.produces ?? ["application/json"])[0],
      schema: declared.schema,
    };
  }
  const content = Object.entries(declared.content ?? {});
  const [type, media] = content.find(([name]) => /json/i.test(name)) ?? content[0] ?? [];
  if (type === undefined) return {};
  return { type: type.includes("*") ? "application/json" : type, schema: media?.schema };
}

function refuse(response, status, reason) {
  response.writeHead(status, { "content-type": "text/plain" }).end(reason);
}
