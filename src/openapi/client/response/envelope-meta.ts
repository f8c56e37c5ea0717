import { setOwn } from "../../../core/json/json-value.ts";
import type { ResponseHead } from "../http-message.ts";
import { headerOf } from "./response-headers.ts";

/** What an envelope says of the response it came in. */
export interface EnvelopeMeta {
  readonly statusCode: number;
  /** Without cookies; values of one name joined. */
  readonly headers: Readonly<Record<string, string>>;
  /** `""` without the header. */
  readonly contentType: string;
  readonly setCookie: readonly string[] | undefined;
}

/** Gives the meta of a response; cookies are kept apart, which joining would break, and any name is an ordinary one. */
export function envelopeMeta(response: Pick<ResponseHead, "status" | "headers">): EnvelopeMeta {
  const { status, headers: fields } = response;
  const contentType = headerOf(fields, "content-type") ?? "";
  if (isJoined(fields)) return { statusCode: status, headers: fields, contentType, setCookie: undefined };
  const headers: Record<string, string> = {};
  let setCookie: readonly string[] | undefined;
  for (const name of Object.keys(fields)) {
    const value = fields[name] as string | readonly string[];
    if (name === "set-cookie") setCookie = typeof value === "string" ? [value] : [...value];
    else setOwn(headers, name, typeof value === "string" ? value : value.join(", "));
  }
  return { statusCode: status, headers, contentType, setCookie };
}

/** Most responses have one value for each name and no cookies: their headers need no copy. */
function isJoined(fields: ResponseHead["headers"]): fields is Readonly<Record<string, string>> {
  for (const name in fields) if (typeof fields[name] !== "string" || name === "set-cookie") return false;
  return true;
}
