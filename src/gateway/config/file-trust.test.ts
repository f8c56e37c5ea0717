import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { findConfig, findDistrust } from "./config-files.ts";
import { loadConfig } from "./read-config.ts";

const isRoot = process.getuid?.() === 0;
/** Files can be given to others by root alone. */
const asRoot = it.skipIf(!isRoot);
const SOMEBODY = 54_321;

let folder: string;
const at = (name: string, text = "{}") => {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, 0o644);
  return path;
};
const load = (path: string) =>
  loadConfig(path, { env: {}, cwd: folder }).then(
    () => "loaded",
    (error: Error) => error.message,
  );

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waybill-trust-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("files that decide what runs", () => {
  it.each(["waybill.config.json", "waybill.config.mjs"])(
    "RE-30 %s is refused while others can change it",
    async (name) => {
      const mark = join(folder, "ran");
      const code = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(mark)}, ""); export default {};`;
      const path = at(name, name.endsWith(".mjs") ? code : "{}");
      chmodSync(path, 0o666);
      const said = await load(path);
      expect(said).toBe(
        `${name} can be changed by other users (mode 666), who could run anything as you: run "chmod go-w ${path}" if you trust what it holds.`,
      );
      expect(await findConfig(folder)).toBe(path);
      chmodSync(path, 0o644);
      expect(await load(path)).toBe("loaded");
    },
  );

  it("RE-30 names the place of an env file that others can change, and takes nothing from it", async () => {
    const path = at("secrets.env", "TOKEN=theirs");
    chmodSync(path, 0o646);
    const config = at("waybill.config.json", '{ "envFile": "secrets.env", "name": "${TOKEN}" }');
    expect(await load(config)).toContain(
      'waybill.config.json:1:14  The env file "secrets.env" can be changed by other users (mode 646)',
    );
  });

  asRoot(
    "RE-30 refuses what belongs to another user, linked to or not, and takes what is root's",
    async () => {
      const path = at("waybill.config.json");
      chownSync(path, SOMEBODY, 0);
      expect(await load(path)).toBe(
        `waybill.config.json belongs to another user (uid ${SOMEBODY}), who could run anything as you: run "chown 0 ${path}" if you trust what it holds.`,
      );
      const link = join(folder, "link.json");
      symlinkSync(path, link);
      expect(await findDistrust(link)).toContain("belongs to another user");
      chownSync(path, 0, 0);
      expect(await findDistrust(link)).toBeUndefined();
      lchownSync(link, SOMEBODY, 0);
      expect(await findDistrust(link)).toMatch(/^is a link that belongs to another user/);
    },
  );

  asRoot("RE-30 takes a group of the user's own for nobody else's, and any other for others", async () => {
    const path = at("waybill.config.json");
    chmodSync(path, 0o664);
    expect(await load(path)).toBe("loaded");
    chownSync(path, 0, SOMEBODY);
    expect(await load(path)).toContain("mode 664");
  });

  asRoot("RE-30 takes what is theirs who asked for root", async () => {
    const path = at("waybill.config.json");
    chownSync(path, SOMEBODY, SOMEBODY);
    process.env["SUDO_UID"] = String(SOMEBODY);
    onTestFinished(() => void delete process.env["SUDO_UID"]);
    expect(await load(path)).toBe("loaded");
  });

  asRoot("RE-30 looks for no config above where the repository is another user's", async () => {
    mkdirSync(join(folder, ".git"));
    mkdirSync(join(folder, "mine"));
    const path = at("waybill.config.json");
    expect(await findConfig(join(folder, "mine"))).toBe(path);
    chownSync(join(folder, ".git"), SOMEBODY, 0);
    expect(await findConfig(join(folder, "mine"))).toBeUndefined();
    expect(await findConfig(folder)).toBe(path);
  });

  it("says nothing of a file that is not there", async () => {
    expect(await findDistrust(join(folder, "none"))).toBeUndefined();
  });
});
