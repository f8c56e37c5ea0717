/** The version of this package, as `package.json` says it. */
export const PACKAGE_VERSION = "0.1.0";
