import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { handSource, loadedConfig } from "../../../test/served-gateway.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Source, SourceState } from "../sources/source.ts";
import { unusedPatterns } from "./unused-patterns.ts";

const UP: SourceState = { status: "up", since: 0 };
const DOWN: SourceState = { status: "down", since: 0, reason: "It is away." };

function source(name: string, state: SourceState, ...names: string[]): Source {
  return { ...handSource(name, state), operations: names.map((one) => query(`${name}.${one}`, () => 1)) };
}

function unused(config: GatewayConfig, ...sources: Source[]): readonly string[] {
  return unusedPatterns({ sources }, loadedConfig(config));
}

describe("patterns that match nothing", () => {
  const vault = source("vault", UP, "read", "write");

  it("RE-30 are told, with the nearest that would match", () => {
    const policies = { "valt.*": {}, "vault.raed": {}, "vault.*": {}, "vault.w*": {}, "zzz.qqq": {} };
    expect(unused({ policies }, vault)).toEqual([
      'policies["valt.*"] matches no operation; did you mean "vault.*"?',
      'policies["vault.raed"] matches no operation; did you mean "vault.read"?',
      'policies["zzz.qqq"] matches no operation.',
    ]);
  });

  it("RE-30 are told of allow and deny lists, by their place", () => {
    const policy = { allow: ["read", "wr*"], deny: ["wirte", "r?ad"] };
    expect(unused({ mcpServers: { vault: { command: "x", policy } } }, vault)).toEqual([
      '"wirte" in mcpServers.vault.policy.deny matches no operation of it; did you mean "write"?',
    ]);
  });

  it("RE-30 are not told of what is not known while a source is away, nor of a source without operations", () => {
    const away = source("away", DOWN);
    const mcpServers = { away: { command: "x", policy: { deny: ["anything"] } } };
    expect(unused({ mcpServers, policies: { "away.x": {}, "a*.y": {} } }, vault, away)).toEqual([]);
    expect(unused({ policies: { "away.x": {} } }, vault)).toHaveLength(1);
    expect(unused({ policies: { "bare.*": {}, "bare.x": {} } }, source("bare", UP))).toHaveLength(1);
    const modules = { ...source("local", DOWN), kind: "local" } as const;
    expect(unused({ policies: { "own.x": {} } }, vault, modules)).toEqual([]);
  });
});
