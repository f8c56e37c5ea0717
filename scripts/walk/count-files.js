// @ts-check
// Loaded into a process that is walked through (`node --import`): the sources run as they are, and whoever started the process asks
// over the IPC channel which functions of them ran since it last asked.
import { Session } from "node:inspector";
import { register } from "node:module";

register(new URL("./load-typescript.js", import.meta.url));

const SOURCES = new URL("../../src/", import.meta.url).href;
const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** @returns {Record<string, number>} how many functions ran, by file of `src`; what is counted begins anew */
function takeFiles() {
  /** @type {Record<string, number>} */
  const files = {};
  session.post("Profiler.takePreciseCoverage", (error, taken) => {
    if (error !== null) throw error;
    for (const { url, functions } of taken.result) {
      // The last half of a module's name may be a query.
      const path = url.startsWith(SOURCES) ? url.slice(SOURCES.length).replace(/\?.*$/, "") : undefined;
      const ran = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0).length;
      if (path !== undefined && ran > 0) files[path] = (files[path] ?? 0) + ran;
    }
  });
  return files;
}

process.on("message", (message) => {
  if (message === "files") process.send?.({ files: takeFiles() });
});
process.once("disconnect", () => process.exit());
