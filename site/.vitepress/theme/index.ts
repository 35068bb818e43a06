// This theme has the system's fonts, so that a page loads no fonts.
export { default } from "vitepress/theme-without-fonts";
