import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { keyFault, MAX_SEALED_CHARACTERS, SealingKeys } from "./sealing-keys.ts";

const OLD = "the-older-key-of-all-replicas-00";
const NEW = "the-newer-key-of-all-replicas-00";

describe("SealingKeys", () => {
  const keys = new SealingKeys(OLD);
  const sealed = keys.seal("session", "what it says") as string;

  it("Mcp: opens what was sealed with the same key, wherever", () => {
    expect(new SealingKeys(OLD).open("session", sealed)).toBe("what it says");
    expect(sealed).toMatch(/^[\w-]+$/);
    expect(sealed).not.toBe(keys.seal("session", "what it says"));
  });

  it("Mcp: opens nothing for another purpose, or with another key", () => {
    expect(keys.open("request-state", sealed)).toBeUndefined();
    expect(new SealingKeys(NEW).open("session", sealed)).toBeUndefined();
  });

  it("Mcp: seals with the first of several keys, and opens with each", () => {
    const both = new SealingKeys([NEW, OLD]);
    expect(both.open("session", sealed)).toBe("what it says");
    const newer = both.seal("session", "newer") as string;
    expect(new SealingKeys(NEW).open("session", newer)).toBe("newer");
    expect(keys.open("session", newer)).toBeUndefined();
  });

  it("Mcp: opens nothing that was changed at any place, cut, made longer, or written otherwise", () => {
    for (let at = 0; at < sealed.length; at++) {
      const other = sealed[at] === "A" ? "B" : "A";
      expect(keys.open("session", sealed.slice(0, at) + other + sealed.slice(at + 1))).toBeUndefined();
      expect(keys.open("session", sealed.slice(0, at))).toBeUndefined();
    }
    for (const other of [
      `${sealed}A`,
      `${sealed}=`,
      ` ${sealed}`,
      `${sealed}\n`,
      sealed.replace(/./, "$&\0"),
    ])
      expect(keys.open("session", other)).toBeUndefined();
  });

  it("Mcp: opens nothing of another version", () => {
    const bytes = Buffer.from(sealed, "base64url");
    for (const version of [0, 2, 255]) {
      bytes[0] = version;
      expect(keys.open("session", bytes.toString("base64url"))).toBeUndefined();
    }
  });

  it("Mcp: opens no text of its own making for anybody", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(keys.open("session", Buffer.from(bytes).toString("base64url"))).toBeUndefined();
      }),
      runs(1_000),
    );
  });

  it("Mcp: seals as much as fits, and not one byte more", () => {
    const most = (MAX_SEALED_CHARACTERS * 3) / 4 - 33;
    const longest = keys.seal("session", "x".repeat(most)) as string;
    expect(longest).toHaveLength(MAX_SEALED_CHARACTERS);
    expect(keys.open("session", longest)).toHaveLength(most);
    expect(keys.seal("session", "x".repeat(most + 1))).toBeUndefined();
    expect(keys.open("session", `${longest}A`)).toBeUndefined();
  });
});

describe("keyFault", () => {
  it("Mcp: tells what is wrong with keys, and shows none", () => {
    expect(keyFault([OLD, NEW])).toBeUndefined();
    expect(keyFault(["x".repeat(32)])).toBeUndefined();
    expect(keyFault(["x".repeat(31)])).toBe("must have at least 32 characters; it has 31");
    expect(keyFault([OLD, 5])).toBe("must have at least 32 characters");
    expect(keyFault([])).toBe("must have at least one key");
  });
});
