import fc from "fast-check";
import { runs } from "../runs.ts";

/** Properties that do not say how often they are tried scale with all the others. */
fc.configureGlobal(runs(100));
