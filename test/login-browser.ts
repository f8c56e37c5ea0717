import { walkLogin } from "./login-world.ts";

/** What a browser ended on. */
export interface BrowserEnd {
  readonly status: number;
  readonly text: string;
}

/** Enters a code on the gateway's page; gives where the browser is sent, and the cookie that it was given. */
export async function enterCode(url: string, code: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: "POST",
    redirect: "manual",
    headers,
    body: new URLSearchParams({ code }),
  });
  const cookie = response.headers
    .getSetCookie()
    .map((each) => each.split(";", 1)[0] ?? "")
    .join("; ");
  return {
    status: response.status,
    location: response.headers.get("location") ?? "",
    cookie,
    text: await response.text(),
  };
}

/** Opens an address with the cookies of a browser. */
export async function open(url: string, cookie = ""): Promise<BrowserEnd> {
  const response = await fetch(url, { redirect: "manual", headers: cookie === "" ? {} : { cookie } });
  return { status: response.status, text: await response.text() };
}

/** Logs in by a link as a person does who agrees to everything. */
export async function logInByLink(url: string, code: string, who: string): Promise<BrowserEnd> {
  const { location, cookie, status, text } = await enterCode(url, code);
  if (status !== 303) return { status, text };
  return await open(await walkLogin(location, who), cookie);
}

/** The code that is named in what a caller is told. */
export function codeIn(message: string): string {
  return /\b[A-Z]{4}-[A-Z]{4}\b/.exec(message)?.[0] ?? "";
}
