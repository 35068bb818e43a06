import {
  type Html,
  html,
  PageDocument,
  THEMES,
  ThemeIcon,
  trusted,
  WAVES,
} from "../../src/admin/dashboard/components.ts";
import { ICON, SCRIPT, SCRIPT_SOURCE, STYLE, STYLE_SOURCE } from "./assets.generated.ts";

/** The page may load nothing, and only its own script and style sheet apply. */
const POLICY = [
  "default-src 'none'",
  `script-src ${SCRIPT_SOURCE}`,
  `style-src ${STYLE_SOURCE}`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

export interface DocumentParts {
  readonly title: string;
  /** The command that made the report. */
  readonly command: string;
  readonly sections: readonly Section[];
  /** What stands above all sections. */
  readonly top: Html;
}

/** A part of a report. */
export interface Section {
  readonly id: string;
  /** The short name in the navigation. */
  readonly name: string;
  readonly heading: string;
  readonly content: Html;
}

/** Returns a whole report as one file: its style sheet, script and icon are in it. */
export function documentOf({ title, command, sections, top }: DocumentParts): string {
  const page = PageDocument({
    title,
    head: html`<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">
<style>${trusted(STYLE)}</style>`,
    brand: html`<span class="brand">${WAVES}Weir</span>`,
    navLabel: "Sections",
    nav: sections.map(({ id, name }) => html`<a href="#${id}">${name}</a>`),
    themes: themeChoice(),
    children: html`${top}\n${sections.map(section)}`,
    footer: html`<span class="grow">Made by <code>${command}</code></span><span>All times are UTC.</span>`,
    end: html`<script>${trusted(SCRIPT)}</script>\n`,
  });
  return `${page}\n`;
}

function section({ id, heading, content }: Section): Html {
  return html`<section id="${id}" class="part" aria-labelledby="${id}-heading"><h2 id="${id}-heading">${heading}</h2>
${content}</section>
`;
}

/** The choice works without scripts and without storage: the style sheet reads which button is checked. */
function themeChoice(): Html {
  const choices = THEMES.map(({ id, label, path }, index) => {
    return html`<label title="${label}"><input class="hidden" type="radio" name="theme" id="theme-${id}"${index === 0 && html` checked`}><span class="hidden">${label}</span>${ThemeIcon({ path })}</label>`;
  });
  return html`<fieldset class="themes"><legend class="hidden">Theme</legend>${choices}</fieldset>`;
}
