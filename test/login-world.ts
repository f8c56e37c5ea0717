import { fileURLToPath } from "node:url";
import { startAskedChild } from "./asked-child.ts";

/** What an authorization server was asked for so far. */
export interface LoginCounts {
  readonly authorization_code: number;
  readonly refresh_token: number;
  readonly device: number;
  readonly refused: number;
  readonly revoked: number;
  readonly registered: number;
  /** Documents of clients that were read. */
  readonly documents: number;
}

/** A real authorization server in a process of its own, with an HTTP API and an MCP server behind it. */
export interface LoginWorld {
  readonly issuer: string;
  counts(): Promise<LoginCounts>;
  /** Makes every access token invalid that was given so far. */
  expire(): Promise<void>;
  /** Makes every access token of a person invalid, and what others are had for. */
  end(person: string): Promise<void>;
  set(settings: {
    readonly audience?: string;
    readonly metadata?: object | null;
    readonly accessSeconds?: number;
    /** Whether tokens can be revoked. */
    readonly revocation?: "on" | "failing" | "none";
    /** Whether access tokens are signed, or say nothing by themselves. */
    readonly format?: "jwt" | "opaque";
  }): Promise<void>;
  close(): Promise<void>;
}

/** Starts it. */
export async function startLoginWorld(): Promise<LoginWorld> {
  const path = fileURLToPath(new URL("./login-children/login-world.js", import.meta.url));
  const { first, ask, close } = await startAskedChild<{ issuer: string }>(path);
  return {
    issuer: first.issuer,
    counts: () => ask("counts"),
    expire: () => ask("expire"),
    end: (person) => ask("end", person),
    set: (settings) => ask("set", settings),
    close,
  };
}

/** Walks through the pages of an authorization server as a person does who agrees to everything; gives the address they are sent back to. */
export async function walkLogin(start: string, login = "ann"): Promise<string> {
  const cookies = new Map<string, string>();
  let [url, form] = [start, undefined as URLSearchParams | undefined];
  for (let step = 0; step < 30; step++) {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form !== undefined && { method: "POST", body: form }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    form = undefined;
    if (location !== null) {
      await response.body?.cancel();
      const next = new URL(location, url);
      if (next.pathname.endsWith("/callback")) return next.href;
      url = next.href;
      continue;
    }
    const page = await response.text();
    const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1];
    if (action === undefined) return page;
    form = new URLSearchParams({ login, password: "x" });
    for (const [input] of page.matchAll(/<input[^>]*>/g)) {
      const name = /name="([^"]*)"/.exec(input)?.[1];
      const value = /value="([^"]*)"/.exec(input)?.[1];
      if (name !== undefined && value !== undefined && /type="hidden"/.test(input)) form.set(name, value);
    }
    url = new URL(action.replaceAll("&amp;", "&"), url).href;
  }
  throw new Error("The walk through the pages has no end.");
}
