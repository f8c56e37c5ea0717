import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { schemaOf } from "../../gateway/schema-of.ts";
import { isAuthOn } from "../../gateway/serve/serve-settings.ts";
import { membersOf, partsOf } from "../call/input-schema.ts";
import { OWNER_TOKEN } from "../inspect/owner-token.ts";
import { shellWord } from "../list/example-call.ts";
import { sourceWords } from "../list/source-words.ts";
import { spelledCommand } from "../spelled-command.ts";
import type { Announcement } from "./announce.ts";

/** Command lines that work when they are pasted in another terminal of the same folder, after what has to be done before. */
export function nextCommands(announcement: Announcement): readonly string[] {
  const { io, flags, target, gateway, url } = announcement;
  const { serve = {} } = target.loaded.config;
  const reached = serve.http === false ? undefined : url;
  const command = spelledCommand(io);
  const words = sourceWords(flags);
  const own = words === "" ? "" : ` ${words}`;
  const end = url === undefined ? [] : [`curl -s ${url}/health`];
  if (reached !== undefined && isAuthOn(serve.auth))
    return [`${command} list${own}`, ...end, ...withToken(announcement, `${command} list --url ${reached}`)];
  const from = reached === undefined ? own : ` --url ${reached}`;
  const [first] = [...gateway.executor.operations].filter(isHarmless).sort(byNearness);
  const [any] = gateway.executor.operations;
  const lines = [`${command} list${from}`];
  if (first !== undefined) lines.push(`${command} call ${shellWord(first.id)}${from}`);
  else if (any !== undefined) lines.push(`${command} describe ${shellWord(any.id)}${from}`);
  if (reached === undefined || first === undefined) return [...lines, ...end];
  const body = shellWord(JSON.stringify({ operation: first.id, input: {} }));
  return [...lines, `curl -s ${reached}/call -H 'content-type: application/json' -d ${body}`];
}

/** A line that asks the gateway itself: with the variable that a token comes from, else after what is to be set, which no line can show. */
function withToken({ io, target }: Announcement, line: string): readonly string[] {
  const { tokenVariables = new Map<string, string>(), config } = target.loaded;
  const known = [...tokenVariables.values()].find((name) => (io.env[name] ?? "") !== "");
  if (known !== undefined)
    return [known === "WAYBILL_TOKEN" ? line : `${line} --token-env ${shellWord(known)}`];
  const { tokens = {}, jwt } = config.serve?.auth ?? {};
  if (Object.hasOwn(tokens, OWNER_TOKEN))
    return ['# with WAYBILL_TOKEN set to what stands after "#token=" in the address of the inspector:', line];
  const holders = Object.keys(tokens).length > 0;
  const which =
    holders || jwt === undefined ? "a token of serve.auth.tokens" : "a token of serve.auth.jwt.issuer";
  return [`# with WAYBILL_TOKEN set to ${which}:`, line];
}

/** What might print something that is nobody else's business. */
const TELLING = /env|secret|token|config|password|credential|key|user|account/i;

/** Reads only, needs no input and no rights, ends, and shows nothing that should not be on a screen; tools of others only say that they do. */
function isHarmless(operation: AnyOperation): boolean {
  const { type, annotations, access, visibility, tier = "community", source = "local" } = operation;
  const isReading = type === "query" || (type === "mutation" && annotations?.readOnly === true);
  if (!isReading || access !== undefined || visibility === "internal" || tier !== "community") return false;
  if (source === "mcp" || TELLING.test(operation.id)) return false;
  const schema = schemaOf(operation, "input");
  return schema === undefined || membersOf(partsOf(schema, schema)).required.size === 0;
}

/** Local ones first: they answer soonest. */
function byNearness(a: AnyOperation, b: AnyOperation): number {
  const rank = ({ source = "local" }: AnyOperation) => (source === "local" ? 0 : 1);
  return rank(a) - rank(b) || (a.id < b.id ? -1 : 1);
}
