"""Classes with the names and habits of other packages: change the import, keep the program.

===========================  ==================================
instead of                   write
===========================  ==================================
``from rbloom import``       ``from everbloom.compat.rbloom import``
``from pybloom_live import`` ``from everbloom.compat.pybloom_live import``
``from abloom import``       ``from everbloom.compat.abloom import``
===========================  ==================================

Files and bytes are everbloom's: what the other package has saved cannot be read. A new program should take
:class:`everbloom.Filter`, which does more and takes whole arrays at once.
"""
