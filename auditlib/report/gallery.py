def figures_page(audit, table, folder): return ""
