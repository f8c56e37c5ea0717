import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { stateFolder } from "./state-folder.ts";

const ON_LINUX = { home: "/home/ada", platform: "linux" } as const;

describe("the folder for state", () => {
  it("is the one that is named, anywhere", () => {
    const env = { WAYBILL_STATE_DIR: "/srv/waybill", XDG_STATE_HOME: "/x", LOCALAPPDATA: "/l" };
    expect(stateFolder({ env, ...ON_LINUX })).toBe("/srv/waybill");
    expect(stateFolder({ env, platform: "win32" })).toBe("/srv/waybill");
  });

  it("is where the platform keeps such things", () => {
    expect(stateFolder({ env: { XDG_STATE_HOME: "/x" }, ...ON_LINUX })).toBe(join("/x", "waybill"));
    expect(stateFolder({ env: { XDG_STATE_HOME: "" }, ...ON_LINUX })).toBe(
      join("/home/ada", ".local", "state", "waybill"),
    );
    expect(stateFolder({ env: {} })).toContain(homedir());
    const windows = { home: "/users/ada", platform: "win32" } as const;
    expect(stateFolder({ env: { LOCALAPPDATA: "/l", XDG_STATE_HOME: "/x" }, ...windows })).toBe(
      join("/l", "waybill"),
    );
    expect(stateFolder({ env: {}, ...windows })).toBe(join("/users/ada", "AppData", "Local", "waybill"));
  });
});
