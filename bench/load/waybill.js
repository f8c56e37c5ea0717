import "../../dist/index.js";
