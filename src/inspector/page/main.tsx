import { render } from "preact";
import { App } from "./app.tsx";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import { takeTokenFromAddress } from "./connection/token.ts";
import { applyTheme, readTheme } from "./theme.ts";

applyTheme(readTheme());
takeTokenFromAddress();
const root = document.getElementById("page");
if (root !== null) render(<App />, root);
