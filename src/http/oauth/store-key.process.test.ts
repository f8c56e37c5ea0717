import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { currentKey, keyAt } from "./store-key.ts";

it.skipIf(process.platform === "win32")(
  "the key of kept logins is in the keychain of macOS, where that answers",
  async () => {
    const bin = mkdtempSync(join(tmpdir(), "waybill-keychain-"));
    onTestFinished(() => rmSync(bin, { recursive: true, force: true }));
    const folder = join(bin, "logins");
    const keychain = join(bin, "security");
    // What security does with these arguments: -i reads a command from stdin, so that no secret stands on a command line.
    const script = `#!/bin/sh
cd "${bin}"
echo "$@" >> asked
case "$1" in
  -i) read -r command s service a name w secret; [ -f locked ] && exit 1
      [ "$command $s $service $a $w" = "add-generic-password -s waybill -a -w" ] && printf '%s' "$secret" > "$name" ;;
  find-generic-password) [ -f locked ] && kill -9 $$; [ -f "$5" ] || exit 44; cat "$5" ;;
esac`;
    writeFileSync(keychain, script, { mode: 0o755 });
    const options = { folder, env: {}, platform: "darwin", keychain } as const;
    const made = await currentKey(options);
    expect(made).toMatchObject({ place: "keychain", bytes: expect.any(Buffer) });
    expect((await currentKey(options)).bytes.equals(made.bytes)).toBe(true);
    expect((await keyAt("keychain", options)).bytes.equals(made.bytes)).toBe(true);
    const asked = readFileSync(join(bin, "asked"), "utf8");
    expect(asked).toContain("find-generic-password -s waybill -a tokens-");
    expect(asked).not.toContain(made.bytes.toString("base64url"));
    expect(existsSync(join(folder, "key"))).toBe(false);
    writeFileSync(join(bin, "locked"), "");
    await expect(keyAt("keychain", options)).rejects.toMatchObject({ reason: "keyring" });
    expect(await currentKey(options)).toMatchObject({ place: "file" });
  },
);
