import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type InspectorPage, openInspector } from "./inspector-page.ts";
import { type InspectorProject, openInspectorProject } from "./inspector-project.ts";
import type { ServedFolder } from "./installed-folder.ts";
import { openBrowser } from "./open-browser.ts";

/** A browser, and a project whose gateway is served; there while tests run. */
export interface UsedInspectorProject {
  readonly browser: Browser;
  readonly project: InspectorProject;
  /** A test that serves it anew puts that here. */
  served: ServedFolder;
}

/** Gives all tests of a suite a browser and a served project of their own; `prepare` may write into it before it is served. */
export function useInspectorProject(prepare?: (project: InspectorProject) => void): UsedInspectorProject {
  const used: Partial<{ -readonly [name in keyof UsedInspectorProject]: UsedInspectorProject[name] }> = {};
  beforeAll(async () => {
    const project = openInspectorProject();
    used.project = project;
    prepare?.(project);
    [used.browser, used.served] = await Promise.all([openBrowser(), project.open()]);
  });
  afterAll(async () => {
    await used.browser?.close();
    await used.project?.remove();
  });
  // Complete by the time any test looks at it.
  return used as UsedInspectorProject;
}

/** Opens a page of the inspector before each test, which is given to `take`, and closes it afterwards. */
export function useInspectorPage(used: UsedInspectorProject, take: (inspector: InspectorPage) => void): void {
  let inspector: InspectorPage | undefined;
  beforeEach(async () => {
    inspector = await openInspector(used.browser, used.served.url);
    take(inspector);
  });
  afterEach(() => inspector?.close());
}
