import { expect, it } from "vitest";
import { TokenSources } from "./token-source.ts";

const address = { kind: "endpoint", url: new URL("https://login.example/token") } as const;
const client = (clientId: string) => ({ clientId, clientSecret: "hush-hush" });

function createSources(): TokenSources {
  const send = () => Promise.reject(new Error("Nothing is sent here."));
  return new TokenSources(send, () => {});
}

it("RE-25 equal credentials share a source, and others never do", () => {
  const sources = createSources();
  const one = sources.get("a", { ...client("x"), parameters: { a: "1", b: "2" } }, address);
  expect(sources.get("b", { ...client("x"), parameters: { b: "2", a: "1" } }, address)).toBe(one);
  const others = [
    sources.get("a", client("x"), address),
    sources.get("a", { ...client("x"), clientSecret: "other" }, address),
    sources.get("a", { ...client("x"), refreshToken: "r" }, address),
    sources.get("a", { ...client("x"), scopes: [] }, address),
    sources.get("a", { ...client("x"), clientAuth: "post" }, address),
    sources.get("a", client("x"), { ...address, kind: "discovery" }),
    sources.get("a", client("x"), { ...address, url: new URL("https://other.example/token") }),
  ];
  expect(new Set([one, ...others]).size).toBe(others.length + 1);
});

it("RE-25 a thousand sources are kept, and of one more the one not used for longest goes", () => {
  const sources = createSources();
  const all = Array.from({ length: 1_000 }, (_, index) => sources.get("a", client(`c${index}`), address));
  expect(sources.get("a", client("c0"), address)).toBe(all[0]);
  sources.get("a", client("c1000"), address);
  expect(sources.get("a", client("c0"), address)).toBe(all[0]);
  expect(sources.get("a", client("c2"), address)).toBe(all[2]);
  expect(sources.get("a", client("c1"), address)).not.toBe(all[1]);
});
