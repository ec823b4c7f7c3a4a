/** What would not be seen in the text of a message becomes a `mark`, which the page shows as it does everywhere. */
import { revealInvisible } from '../lib/invisible.ts'

/** As much of a node of the HTML tree as is looked at. */
interface TreeNode {
  type: string
  tagName?: string
  value?: string
  properties?: Record<string, unknown>
  children?: TreeNode[]
}

/** A plugin of rehype. */
export function revealPlugin(): (tree: TreeNode) => void {
  return (tree) => reveal(tree)
}

function reveal(node: TreeNode): void {
  if (node.children === undefined) return
  node.children = node.children.flatMap((child) => {
    reveal(child)
    return child.type === 'text' && child.value !== undefined ? revealed(child, child.value) : [child]
  })
}

function revealed(node: TreeNode, value: string): TreeNode[] {
  const parts = revealInvisible(value)
  if (parts.every(({ hidden }) => hidden === undefined)) return [node]
  return parts.map(({ text, hidden }) => {
    const piece = { type: 'text', value: text }
    return hidden === undefined
      ? piece
      : { type: 'element', tagName: 'mark', properties: {}, children: [piece] }
  })
}
