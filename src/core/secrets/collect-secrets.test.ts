import { describe, expect, it } from "vitest";
import { collectArgumentSecrets } from "./collect-secrets.ts";
import { SecretMask } from "./secret-mask.ts";

function maskOf(args: readonly string[]): SecretMask {
  const secrets = new SecretMask();
  collectArgumentSecrets(args, secrets);
  return secrets;
}

describe("secrets in the arguments of a program", () => {
  it.each([
    [["--token", "open-sesame-now"], "open-sesame-now"],
    [["--api-key=open-sesame-now"], "open-sesame-now"],
    [["run", "-e", "DB_PASSWORD=open-sesame-now", "image"], "open-sesame-now"],
    [
      ["run", "-e", "GITHUB_TOKEN=ghp_abcDEF1234567890abcDEF123456789"],
      "ghp_abcDEF1234567890abcDEF123456789",
    ],
    [["--header", "X-Api-Key: open-sesame-now"], "open-sesame-now"],
    [["--header", "Authorization: Bearer open-sesame-now"], "open-sesame-now"],
  ])("RE-30 are masked wherever they come back alone: %j", (args, secret) => {
    expect(maskOf(args).mask(`refused ${secret} here`)).not.toContain(secret);
  });

  it.each([
    [["sort_key=name"], "name"],
    [["--sort-by", "name"], "name"],
    [["REGION=eu-west-1"], "eu-west-1"],
    [["--config", "a:b"], "b"],
  ])("RE-30 are no plain words: %j", (args, word) => {
    expect(maskOf(args).mask(`the ${word} here`)).toBe(`the ${word} here`);
  });
});
