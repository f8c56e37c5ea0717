import { describe, expect, it } from "vitest";
import { type HostServers, mergeHosts } from "./merge-hosts.ts";

function host(name: string, part: Partial<HostServers>): HostServers {
  return { host: name, servers: {}, secrets: {}, notes: [], ...part };
}

const NONE = new Map<string, string>();

describe("servers of several hosts", () => {
  it("are there once when they are alike, and both when they differ", () => {
    const files = { command: "files" };
    const merged = mergeHosts(
      [
        host("One", { servers: { files, git: { command: "git-a" } } }),
        host("Two", { servers: { files, git: { command: "git-b" } }, notes: ["Something was odd."] }),
        host("Three", { servers: { git: { command: "git-b" } } }),
      ],
      NONE,
    );
    expect([...merged.servers]).toEqual([
      ["files", files],
      ["git", { command: "git-a" }],
      ["git-2", { command: "git-b" }],
    ]);
    expect(merged.notes).toContain("Something was odd.");
    expect(merged.notes).toContain('"git" of Two is there twice; this one is called "git-2".');
  });

  it("keep secrets apart that have the same name and another value", () => {
    const servers = { git: { command: "git", env: { TOKEN: "${TOKEN}", OTHER: "$${TOKEN} ${TOKENS}" } } };
    const merged = mergeHosts(
      [
        host("One", { servers, secrets: { TOKEN: "first" } }),
        host("Two", { servers, secrets: { TOKEN: "second" } }),
        host("Three", { servers, secrets: { TOKEN: "second" } }),
      ],
      new Map([["TOKEN", "before"]]),
    );
    expect([...merged.secrets]).toEqual([
      ["TOKEN_2", "first"],
      ["TOKEN_3", "second"],
    ]);
    expect([...merged.servers].map(([name, { env }]) => [name, env])).toEqual([
      ["git", { TOKEN: "${TOKEN_2}", OTHER: "$${TOKEN} ${TOKENS}" }],
      ["git-2", { TOKEN: "${TOKEN_3}", OTHER: "$${TOKEN} ${TOKENS}" }],
    ]);
  });

  it("use a secret that is kept already", () => {
    const servers = { git: { command: "git", env: { TOKEN: "${TOKEN}" } } };
    const merged = mergeHosts(
      [host("One", { servers, secrets: { TOKEN: "same" } })],
      new Map([["TOKEN", "same"]]),
    );
    expect([merged.secrets.size, merged.servers.get("git")]).toEqual([0, servers.git]);
  });

  it("may have any name", () => {
    const servers = JSON.parse('{"__proto__":{"command":"a"},"constructor":{"command":"b"}}');
    const merged = mergeHosts([host("One", { servers }), host("Two", { servers })], NONE);
    expect([...merged.servers.keys()]).toEqual(["__proto__", "constructor"]);
  });
});
