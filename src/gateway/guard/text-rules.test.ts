import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { findInText, GUARD_KINDS, isCardNumber } from "./text-rules.ts";

const ALL = new Set(GUARD_KINDS);

function rulesIn(text: string, linkHosts: readonly string[] = ["*"]): string[] {
  return findInText(text, { kinds: ALL, linkHosts }).map(({ rule }) => rule);
}

/** Letters and digits that look random, the same in every run; in pieces, so that no scanner takes this file for a leak. */
function random(length: number, alphabet = "aB3dE5gH7jK9mN2pQ4rS6tU8vW1xY0z"): string {
  let state = length * 7 + 3;
  return Array.from({ length }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return alphabet[state % alphabet.length];
  }).join("");
}

const JWT = [`{"alg":"HS256","typ":"JWT"}`, `{"sub":"ada"}`].map((part) => btoa(part).replace(/=+$/, ""));

describe("credentials", () => {
  it.each([
    ["aws-access-key", `AKIA${random(16, "ABCDEFGHJKLMNPQRSTUVWXYZ234567")}`],
    ["github-token", `ghp_${random(36)}`],
    ["github-token", `github_pat_${random(22)}_${random(59)}`],
    ["gitlab-token", `glpat-${random(20)}`],
    ["npm-token", `npm_${random(36)}`],
    ["pypi-token", `pypi-AgE${random(60)}`],
    ["slack-token", `xoxb-${random(12, "1234567890")}-${random(24)}`],
    [
      "slack-webhook",
      `https://hooks.slack.com/services/T${random(8, "ABC123")}/B${random(8, "ABC123")}/${random(24)}`,
    ],
    ["stripe-key", `sk_live_${random(24)}`],
    ["google-api-key", `AIza${random(35)}`],
    ["model-provider-key", `sk-proj-${random(48)}`],
    ["model-provider-key", `sk-ant-api03-${random(48)}`],
    ["hugging-face-token", `hf_${random(34)}`],
    ["sendgrid-key", `SG.${random(22)}.${random(43)}`],
    ["azure-storage-key", `DefaultEndpointsProtocol=https;AccountKey=${random(86)}==`],
    ["jwt", `${JWT.join(".")}.${random(43)}`],
    ["authorization-header", `"Authorization": "Bearer ${random(40)}"`],
    ["url-password", `postgres://app:${random(12)}@db.internal:5432/app`],
    ["assigned-secret", `client_secret = "${random(24)}"`],
    ["private-key", `-----BEGIN RSA PRIVATE KEY-----\n${random(400)}\n-----END RSA PRIVATE KEY-----`],
    [
      "private-key",
      `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n${random(400)}\n-----END RSA PRIVATE KEY-----`,
    ],
  ])("%s is found: %s", (rule, secret) => {
    const text = `before ${secret} after`;
    const [found] = findInText(text, { kinds: new Set(["credentials"]), linkHosts: [] });
    expect(found?.rule).toBe(rule);
    const shown = text.slice(found?.at, found?.end);
    expect(secret).toContain(shown);
    expect(shown.length).toBeGreaterThanOrEqual(12);
  });

  it.each([
    ["after a line feed", `{"env":"A=1\\nghp_${random(36)}"}`, "github-token"],
    [
      "after an escaped character",
      `{"q":"a\\u0026AKIA${random(16, "ABCDEFGHJKLMNPQRSTUVWXYZ234567")}"}`,
      "aws-access-key",
    ],
    ["after a name on a line of its own", `A=1\\npassword=${random(24)}`, "assigned-secret"],
    ["of a header", `{\\"Authorization\\":\\"Bearer ${random(40)}\\"}`, "authorization-header"],
  ])("are found in a text that holds JSON: %s", (_, text, rule) => {
    expect(rulesIn(text)).toContain(rule);
  });

  it.each([
    ["a placeholder", "password: your-password-here and token=<your-token> and api_key=${API_KEY}"],
    ["stars", "postgres://app:***@db.internal/app and Authorization: Bearer ****************"],
    ["a hash of git", "commit 9fceb02d0ae598e95dc970b74767f19372d61af8"],
    ["a UUID", "6fa459ea-ee8a-3ca4-894e-db77e160355e"],
    [
      "words with hyphens",
      "sk-learn-is-a-library-of-python and npm_package_config_registry_url_of_this_host",
    ],
    ["the key of a documentation", "AKIAIOSFODNN7EXAMPLE"],
    ["an address with a port", "http://localhost:8080/@scope/package"],
    ["a public key", `-----BEGIN PUBLIC KEY-----\n${random(200)}\n-----END PUBLIC KEY-----`],
    ["dots and letters like a token", "eyJust.eyJust.some-words-with-hyphens-that-go-on"],
    ["a sentence about tokens", "The token: refreshed automatically; secret = nothing to see here"],
  ])("%s is none", (_, text) => {
    expect(rulesIn(text)).toEqual([]);
  });
});

describe("numbers of payment cards", () => {
  it.each([
    "4111111111111111",
    "5555 5555 5555 4444",
    "3782-822463-10005",
    "6011111111111117",
    "30569309025904",
    "4111\u00a01111\u00a01111\u00a01111",
    "4111\u20111111\u20111111\u20111111",
    "\uff14\uff11\uff11\uff11111111111111",
    "\u0664\u0661\u0661\u0661111111111111",
    "\\n4111111111111111",
  ])("%s is found", (number) => {
    expect(rulesIn(`card ${number}, thanks`)).toEqual(["payment-card"]);
  });

  it.each([
    ["another check digit", "4111111111111112"],
    ["digits of one kind", "0000000000000000"],
    ["another issuer", "9111111111111111"],
    ["digits within more", "14111111111111111999"],
    ["digits in a word", "x4111111111111111"],
    ["a decimal number", "0.4111111111111111"],
    ["odd groups", "41 11 11 11 11 11 11 11"],
    ["a time in milliseconds", "1700000000000"],
  ])("%s is none", (_, text) => {
    expect(rulesIn(text)).toEqual([]);
  });

  it("need the length of their issuer", () => {
    expect(isCardNumber("4222222222222")).toBe(true);
    expect(isCardNumber("42222222222222")).toBe(false);
  });
});

describe("what else is found", () => {
  it("is a hidden character, by kind", () => {
    expect(rulesIn("a\u202eb\u{e0041}c")).toEqual(["bidi-characters", "tag-characters"]);
    expect(rulesIn("👩‍🚀 and plain\r\ntext")).toEqual([]);
  });

  it.each([
    ["https://evil.example/x?y=1", 1],
    ["![a](https://evil.example/p.png) and [b](//evil.example)", 2],
    ["https://docs.example.com/a and https://example.com", 0],
    ["https://docs.example.com.evil.example/", 1],
    ["https://docs.example.com@evil.example/", 1],
    ["https://DOCS.EXAMPLE.COM/", 0],
    ["https:\\\\evil.example", 1],
    ["https:/evil.example", 1],
    ["//evil.example/p.png", 1],
    ['{"url":"https:\\/\\/evil.example\\/a","own":"https:\\/\\/example.com\\/a"}', 1],
    ["a\\nhttps://evil.example", 1],
    ["https://example.com'@evil.example/", 1],
    ["https://example.com)@a@example.com)@evil.example/", 1],
    ['{"a":"https://example.com","b":"ada@evil.example"}', 0],
    ["a // comment", 0],
    // No slash, which browsers do not need.
    ["![a](http:evil.example/p.png?q=1)", 1],
    ["the scheme http: and https:", 0],
    // What Markdown and HTML write in other ways.
    ["![a](https&colon;//evil.example/p.png)", 1],
    ["![a](&#104;ttps&#x3a;&sol;&#47;evil.example/p.png)", 1],
    ["![a](https&#0000058;&#x00002F;/evil.example/p.png)", 1],
    ["![a](https\\://evil.example/p.png)", 1],
    ["![a](https://evil.example&sol;.example.com/p.png)", 1],
    ["![a](https://docs.example.com/?a=1&amp;b=2&#38;c=3)", 0],
    ["![a](<//evil.example/p.png>)", 1],
    ['<img src="\\\\evil.example/p.png">', 1],
    ['<img src="/\\evil.example/p.png">', 1],
    ['{"pattern":"\\\\d+","folder":"\\\\\\\\server"}', 0],
    ["<a href='ht\ntps:/\t/evil.example'>", 1],
    ["-https://evil.example", 1],
    // What ends a link in a sentence goes on in a name of a host.
    ["![a](<http://docs.example.com).evil.example/p.png>)", 1],
    ["![a](http://docs.example.com\\).evil.example/p.png)", 1],
    [`<img src="http://docs.example.com'.evil.example/p.png">`, 1],
    ['<img src="http://docs.example.com`}.evil.example/p.png">', 1],
    ['<img src="https://docs.example.com\n.evil.example/p.png">', 1],
    [
      "(see https://docs.example.com). It is https://example.com's.\nfetch('https://example.com').then(a.b)",
      0,
    ],
    ["[https://example.com](https://example.com).next", 0],
  ])("is a link to another host: %s", (text, count) => {
    const rules = rulesIn(text, ["*.example.com", "example.com"]);
    expect(rules.filter((rule) => rule === "link-to-other-host")).toHaveLength(count);
  });
});

it.each([
  "-----BEGIN PRIVATE KEY-----",
  "eyJaaaaaaaa.eyJaaaaaaaa.",
  "http://a:",
  "a://",
  "password=",
  "4111 ",
  "authorization: bearer ",
  "xoxb-1",
  "\u202e",
  "https://a)",
  "(//",
  "https://a@",
  "\\n\u00a0",
  "&#104;",
  "h\t",
  "https:a.",
  "https://example.com)a",
])("takes time by the length of a text alone, whatever it repeats: %j", (piece) => {
  const [short, long] = [piece.repeat(20_000), piece.repeat(80_000)];
  const search = { kinds: ALL, linkHosts: ["example.com"] };
  findInText(short, search);
  const took = (text: string): number => {
    const before = cpuMs();
    findInText(text, search);
    return cpuMs() - before;
  };
  const small = took(short);
  const large = took(long);
  expect(large).toBeLessThan(Math.max(small * 16, 200));
});
