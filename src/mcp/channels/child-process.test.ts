import { describe, expect, it } from "vitest";
import { childEnv } from "./child-process.ts";

const PARENT = {
  PATH: "/bin",
  HOME: "/home/someone",
  LC_ALL: "C",
  LC_TIME: "() { :; }; echo gotcha",
  AWS_SECRET_ACCESS_KEY: "secret",
  GITHUB_TOKEN: "secret",
  NODE_OPTIONS: "--inspect",
  SHELL: "() { evil; }",
  EDITOR: "vi",
};

describe("childEnv", () => {
  it("Mcp: gives a child the short safe list of variables and no secret", () => {
    expect(childEnv({ parent: PARENT, platform: "linux" })).toEqual({
      PATH: "/bin",
      HOME: "/home/someone",
      LC_ALL: "C",
    });
  });

  it("Mcp: adds the names that are asked for, and no other", () => {
    const env = childEnv({ parent: PARENT, platform: "linux", inheritEnv: ["EDITOR", "MISSING"] });
    expect(Object.keys(env).sort()).toEqual(["EDITOR", "HOME", "LC_ALL", "PATH"]);
  });

  it("Mcp: gives everything but functions where all is asked for", () => {
    const env = childEnv({ parent: PARENT, platform: "linux", inheritEnv: "all" });
    expect(Object.keys(env).sort()).toEqual(
      Object.keys(PARENT)
        .filter((name) => name !== "LC_TIME" && name !== "SHELL")
        .sort(),
    );
  });

  it("Mcp: lets what is given win, whatever its name or value", () => {
    const env = JSON.parse('{"PATH":"/mine","__proto__":"kept","F":"() { mine; }"}') as Record<
      string,
      string
    >;
    const made = childEnv({ parent: PARENT, platform: "linux", env: { ...env, HOME: undefined } });
    expect(Object.entries(made)).toEqual(
      expect.arrayContaining([
        ["PATH", "/mine"],
        ["HOME", "/home/someone"],
        ["F", "() { mine; }"],
      ]),
    );
    const hostile = childEnv({ parent: {}, platform: "linux", env });
    expect(Object.getOwnPropertyNames(hostile)).toContain("__proto__");
    expect(Object.getPrototypeOf(hostile)).toBe(Object.prototype);
  });

  it("Mcp: knows no case in names on Windows, where the given spelling replaces the inherited one", () => {
    const parent = { Path: "C:\\bin", SystemRoot: "C:\\Windows", SECRET: "x", Editor: "notepad" };
    const env = childEnv({ parent, platform: "win32", env: { PATH: "C:\\mine" }, inheritEnv: ["EDITOR"] });
    expect(env).toEqual({ PATH: "C:\\mine", SystemRoot: "C:\\Windows", Editor: "notepad" });
  });

  it("Mcp: reads the environment of this process unless told otherwise", () => {
    expect(childEnv()["PATH"]).toBe(process.env["PATH"]);
  });
});
