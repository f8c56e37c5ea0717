import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallError } from "../../core/errors/errors.ts";
import type { FailureCause } from "../../core/errors/failure.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { describeAddress, describeServer, toReason, toShownLine } from "./shown-text.ts";

const secrets = new SecretMask();
secrets.add("s3cr3t-t0ken-value");

describe("a text that is shown", () => {
  it("is one line of at most 300 characters with nothing a terminal acts on", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 500 }), (text) => {
        const line = toShownLine(text, secrets);
        expect(line.length).toBeLessThanOrEqual(300);
        expect(line).not.toMatch(/\p{Cc}/u);
        expect(cleanText(line).findings).toEqual([]);
      }),
    );
  });

  it("is cut at 300 characters and not before", () => {
    expect(toShownLine("x".repeat(300), secrets)).toBe("x".repeat(300));
    expect(toShownLine("x".repeat(301), secrets)).toBe(`${"x".repeat(299)}…`);
  });

  it("holds no secret, even one that hides behind what is taken out", () => {
    expect(toShownLine("token s3cr3t-t0ken-value refused", secrets)).toBe("token *** refused");
    expect(toShownLine("token s3cr3t\u0007-t0ken-\u200bvalue refused", secrets)).toBe("token *** refused");
    expect(toShownLine(`${"x".repeat(290)} s3cr3t-t0ken-value`, secrets)).not.toContain("s3cr");
  });

  it("is a sentence that names what to do in the words of a config", () => {
    const reason = (message: string, failure?: FailureCause) =>
      toReason(new CallError("UNAVAILABLE", message, { failure }), secrets);
    expect(reason("It broke")).toBe("It broke.");
    expect(reason("It broke.")).toBe("It broke.");
    const advice = "give it auth, or check the headers";
    const refused = { reason: "credentials", value: 401, advice } as const;
    expect(reason(`it answered with HTTP status 401; ${advice}.`, refused)).toBe(
      "it answered with HTTP status 401; set bearer, oauth or headers for it.",
    );
    const certificate = { reason: "network", value: "DEPTH_ZERO_SELF_SIGNED_CERT" } as const;
    expect(reason("the connection failed.", certificate)).toContain("NODE_EXTRA_CA_CERTS");
    const late = { reason: "handshake-time", advice: "did not finish the handshake in time" } as const;
    expect(reason("X did not finish the handshake in time.", late)).toContain("connectTimeoutMs");
    expect(reason("X did not finish the handshake in time.")).not.toContain("connectTimeoutMs");
    expect(toReason(new AggregateError([new Error("refused")], ""), secrets)).toBe("refused.");
    expect(toReason("plain", secrets)).toBe("plain.");
  });
});

describe("a target that is shown", () => {
  it.each([
    [["--token", "abc", "--verbose"], "npx --token *** --verbose"],
    [["--api-key=abc", "API_KEY=abc"], "npx --api-key=*** API_KEY=***"],
    [
      ["-y", "@modelcontextprotocol/server-filesystem", "/home"],
      "npx -y @modelcontextprotocol/server-filesystem /home",
    ],
    [["postgres://me:pw@db.example/x"], "npx postgres://***@db.example/x"],
    [["ghp16C7e42F292c6912E7710c838347Ae178B4a"], "npx ***"],
    [["--token", "--verbose"], "npx --token --verbose"],
  ])("leaves out what looks like a secret: %j", (args, shown) => {
    expect(describeServer({ command: "npx", args })).toBe(shown);
  });

  it("shows addresses without user, password and query, and paths as they are", () => {
    expect(describeServer({ url: "https://me:pw@h.example:8080/mcp?key=1#x" })).toBe(
      "https://h.example:8080/mcp",
    );
    expect(describeAddress("nats://u:p@127.0.0.1:4222")).toBe("nats://127.0.0.1:4222");
    expect(describeAddress("./api.yaml")).toBe("./api.yaml");
    expect(describeServer({})).toBe("");
  });
});
