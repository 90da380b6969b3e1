int main_placeholder_removed_below();
