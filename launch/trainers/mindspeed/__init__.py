"""MindSpeed-MM as a trainer: https://gitcode.com/Ascend/MindSpeed-MM, read at commit 57069cd5."""
