import type { ToolKind } from '@sandlot/shared/chat/call'
import {
  ArrowRightLeft,
  Brain,
  FilePen,
  FileText,
  FolderInput,
  Globe,
  type LucideIcon,
  Search,
  SquareTerminal,
  Trash2,
  Wrench,
} from 'lucide-react'

const ICONS: Record<ToolKind, LucideIcon> = {
  read: FileText,
  edit: FilePen,
  delete: Trash2,
  move: FolderInput,
  search: Search,
  execute: SquareTerminal,
  think: Brain,
  fetch: Globe,
  switch_mode: ArrowRightLeft,
  other: Wrench,
}

export function ToolIcon(props: { kind: ToolKind; className?: string }) {
  const Icon = ICONS[props.kind]
  return <Icon className={props.className} aria-hidden />
}
