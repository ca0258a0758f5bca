export { default as Sigma } from "sigma";
export { UndirectedGraph } from "graphology";
